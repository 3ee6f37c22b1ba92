/** What ran and what will: one lane for each job (or tag, or kind), past and future on both sides of now. */
import { t, word } from '../lib/i18n';
import { href, navigate } from '../lib/router';
import { familyOf } from '../lib/states';
import { wall, zoneFor } from '../lib/time';
import type { Lane, Mark, TimelineView } from '../lib/types';
import { summary } from './dots';
import { ticks } from './ticks';
import { useWidth } from './width';

const ROW = 26;
const MIN = 6;

/** Where a mark leads: its run if it is one, else the runs of its stretch. */
function target(mark: Mark, lane: Lane, group: string): string {
  if (mark.run_id && mark.count === 1) return href(`/runs/${mark.run_id}`);
  if (mark.planned) return lane.job_id ? href(`/jobs/${lane.job_id}`) : href('/jobs');
  const of = lane.job_id ? { job_id: lane.job_id } : group === 'tag' ? { tag: lane.key } : { kind: lane.key };
  return href('/runs', { ...of, since: mark.from, until: mark.to });
}

function title(mark: Mark, zone: string): string {
  const from = wall(Date.parse(mark.from), zone);
  const many = mark.count > 1 ? ` × ${mark.count}` : '';
  return `${word('state', mark.planned ? 'planned' : mark.state)}${many} · ${from.date} ${from.time} ${from.offset}`;
}

// Trouble is drawn over what went well, never under it.
const weight = (mark: Mark): number => ['off', 'ok', 'wait', 'run', 'outside', 'retry', 'bad'].indexOf(familyOf(mark.state));

/** Plans that would lie upon each other become one; what ran is merged by the server, which knows what is worse. */
function apart(marks: Mark[], x: (at: number) => number): Mark[] {
  const found: Mark[] = [];
  for (const mark of marks) {
    const last = found[found.length - 1];
    const isClose = last?.planned && mark.planned && x(Date.parse(mark.from)) - x(Date.parse(last.to)) < 10;
    if (isClose) found[found.length - 1] = { ...last, to: mark.to, count: last.count + mark.count };
    else found.push(mark);
  }
  return found;
}

export function Timeline({ view, group }: { view: TimelineView; group: string }) {
  const { element, width } = useWidth<HTMLDivElement>();
  const zone = zoneFor();
  const since = Date.parse(view.since);
  const until = Date.parse(view.until);
  const x = (at: number): number => ((at - since) / (until - since)) * width;
  const nowX = x(Date.parse(view.now));
  const height = view.lanes.length * ROW;
  const hasRoom = (at: number): boolean => at > 18 && at < width - 18 && Math.abs(at - nowX) > 36;
  return (
    <div class="timeline">
      <ul class="lanes">
        {view.lanes.map((lane) => (
          <li key={lane.key}>
            {lane.job_id ? <a href={href(`/jobs/${lane.job_id}`)}>{lane.label}</a> : <span>{lane.label}</span>}
            <span class="visually-hidden">{summary(lane.marks.flatMap((mark) => Array<string>(Math.min(mark.count, 50)).fill(mark.planned ? 'planned' : mark.state)))}</span>
          </li>
        ))}
      </ul>
      <div class="plot" ref={element}>
        <svg width={width} height={height + 22} aria-hidden="true">
          {ticks(since, until, width, zone).map((tick) => (
            <g key={tick.at}>
              <line class="grid" x1={x(tick.at)} x2={x(tick.at)} y1={0} y2={height} />
              {hasRoom(x(tick.at)) && (
                <text class="tick" x={x(tick.at)} y={height + 15}>
                  {tick.text}
                </text>
              )}
            </g>
          ))}
          <rect class="future" x={nowX} y={0} width={Math.max(0, width - nowX)} height={height} />
          {view.lanes.map((lane, row) => (
            <g key={lane.key} transform={`translate(0 ${row * ROW})`}>
              <line class="grid" x1={0} x2={width} y1={ROW - 0.5} y2={ROW - 0.5} />
              {[...apart(lane.marks, x)]
                .sort((a, b) => weight(a) - weight(b))
                .map((mark) => (
                  <Bar key={`${mark.from}${mark.planned}`} mark={mark} x={x} zone={zone} act={() => navigate(target(mark, lane, group))} />
                ))}
            </g>
          ))}
          <line class="now" x1={nowX} x2={nowX} y1={0} y2={height} />
          <text class="tick now-word" x={nowX} y={height + 15}>
            {t('time.now')}
          </text>
        </svg>
      </div>
    </div>
  );
}

function Bar({ mark, x, zone, act }: { mark: Mark; x: (at: number) => number; zone: string; act: () => void }) {
  const from = x(Date.parse(mark.from));
  const wide = Math.max(MIN, x(Date.parse(mark.to)) - from);
  const family = familyOf(mark.state);
  const name = <title>{title(mark, zone)}</title>;
  if (mark.planned) {
    return (
      <rect class="planned" x={from - 3.5} y={ROW / 2 - 3.5} width={x(Date.parse(mark.to)) - from + 7} height={7} rx={3.5} onClick={act}>
        {name}
      </rect>
    );
  }
  // Height tells trouble as colour does: what failed stands out taller, what did not happen is hollow.
  const tall = family === 'bad' ? 18 : family === 'ok' ? 10 : 14;
  return (
    <rect
      class={`bar ${family}`}
      x={Math.max(0, from)}
      y={(ROW - tall) / 2}
      width={wide}
      height={tall}
      rx={1.5}
      onClick={act}
    >
      {name}
    </rect>
  );
}
