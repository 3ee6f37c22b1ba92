/** Seven days by the hour: how much ran, and where it went wrong. A cell leads to its runs. */
import { number, t } from '../lib/i18n';
import { href } from '../lib/router';
import { fromWall, slowNow, span, wall, weekday } from '../lib/time';
import type { Heatmap } from '../lib/types';

const DAYS = 7;
const hours = Array.from({ length: 24 }, (_, hour) => hour);

export function HeatMap({ view }: { view: Heatmap }) {
  const cells = new Map(view.cells.map((cell) => [`${cell.day} ${cell.hour}`, cell]));
  const today = Date.parse(`${wall(slowNow.value, view.timezone).date}T12:00:00Z`);
  const days = Array.from({ length: DAYS }, (_, back) => new Date(today - (DAYS - 1 - back) * 86_400_000).toISOString().slice(0, 10));
  const most = Math.max(1, ...view.cells.map((cell) => cell.total));
  return (
    <div class="table-frame">
      <table class="heat">
        <caption class="visually-hidden">{t('heat.caption', { zone: view.timezone })}</caption>
        <thead>
          <tr>
            <td />
            {hours.map((hour) => (
              <th key={hour} scope="col">
                <span class={hour % 3 ? 'visually-hidden' : undefined}>{hour}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days.map((day) => (
            <tr key={day}>
              <th scope="row" title={day}>
                {weekday(Date.parse(`${day}T12:00:00Z`), 'UTC')} <span class="muted">{day.slice(5)}</span>
              </th>
              {hours.map((hour) => {
                const cell = cells.get(`${day} ${hour}`);
                return <td key={hour}>{cell && cell.total > 0 && <Cell cell={cell} most={most} zone={view.timezone} />}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ cell, most, zone }: { cell: Heatmap['cells'][number]; most: number; zone: string }) {
  const at = `${cell.day}T${String(cell.hour).padStart(2, '0')}`;
  const words = t('heat.cell', {
    at: `${cell.day} ${String(cell.hour).padStart(2, '0')}:00`,
    total: number(cell.total),
    bad: number(cell.bad),
    late: span(cell.late_ms_avg),
  });
  const strength = 0.25 + 0.75 * Math.sqrt(cell.total / most);
  return (
    <a
      href={href('/runs', { since: fromWall(`${at}:00`, zone) ?? '', until: fromWall(`${at}:59:59`, zone) ?? '' })}
      class={cell.bad ? 'has-bad' : undefined}
      style={{ '--strength': strength.toFixed(2), '--share': Math.min(1, 0.35 + cell.bad / cell.total).toFixed(2) }}
      aria-label={words}
      title={words}
      tabIndex={-1}
    />
  );
}
