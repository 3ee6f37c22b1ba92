/** When the runs of a list were: bars by family of state, each of which narrows the list to its stretch. */
import { useRef, useState } from 'preact/hooks';
import { summary } from '../../charts/dots';
import { ticks } from '../../charts/ticks';
import { useWidth } from '../../charts/width';
import { number, t } from '../../lib/i18n';
import { familyOf, type Family } from '../../lib/states';
import { wall, zoneFor } from '../../lib/time';
import type { HistogramView } from './types';

// From the base upwards: trouble stands on the line, where heights compare best.
const STACK: Family[] = ['bad', 'retry', 'outside', 'run', 'wait', 'off', 'ok'];

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((a, b) => a + b, 0);

export function Histogram({ view, onPick }: { view: HistogramView; onPick: (since: string, until: string) => void }) {
  const { element, width } = useWidth<HTMLDivElement>();
  const [at, setAt] = useState(0);
  const bars = useRef<HTMLDivElement>(null);
  const zone = zoneFor();
  const since = Date.parse(view.since);
  const whole = Date.parse(view.until) - since;
  const step = view.step_seconds * 1000;
  const left = (ms: number): string => `${((ms - since) / whole) * 100}%`;
  const most = Math.max(1, ...view.bars.map((bar) => sum(bar.by_state)));
  const steer = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(view.bars.length - 1, at + by));
    setAt(next);
    (bars.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="histogram" ref={element}>
      <span class="histogram-top">{number(most)}</span>
      <div class="histogram-bars" role="group" aria-label={t('runs.histogram')} ref={bars} onKeyDown={steer}>
        {view.bars.map((bar, index) => {
          const from = Date.parse(bar.at);
          const told = title(bar, step, zone);
          return (
            <button
              key={bar.at}
              type="button"
              class="histogram-bar"
              style={{ left: left(from), width: `max(4px, calc(${(step / whole) * 100}% - 1px))` }}
              aria-label={told}
              title={told}
              tabIndex={index === Math.min(at, view.bars.length - 1) ? 0 : -1}
              onClick={() => onPick(bar.at, new Date(from + step).toISOString())}
            >
              <span style={{ height: `${Math.max(4, (sum(bar.by_state) / most) * 100)}%` }}>
                {STACK.map((family) => {
                  const count = sum(Object.fromEntries(Object.entries(bar.by_state).filter(([state]) => familyOf(state) === family)));
                  return count > 0 && <i key={family} class={family} style={{ flexGrow: count }} />;
                })}
              </span>
            </button>
          );
        })}
      </div>
      <div class="histogram-axis" aria-hidden="true">
        {ticks(since, since + whole, width, zone).map((tick) => (
          <span key={tick.at} style={{ left: left(tick.at) }}>
            {tick.text}
          </span>
        ))}
      </div>
      {view.truncated && <p class="muted small">{t('runs.truncated', { at: said(Date.parse(view.complete_since), zone) })}</p>}
    </div>
  );
}

function said(ms: number, zone: string): string {
  const { date, time, offset } = wall(ms, zone);
  return `${date} ${time} ${offset}`;
}

function title(bar: HistogramView['bars'][number], step: number, zone: string): string {
  const from = Date.parse(bar.at);
  const counts = Object.entries(bar.by_state).flatMap(([state, count]) => Array<string>(count).fill(state));
  return `${said(from, zone)} – ${wall(from + step, zone).time}: ${summary(counts)}`;
}
