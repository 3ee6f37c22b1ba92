/** Where the time of a run went: waiting, attempts, rests, the callback, one below the other on one axis. */
import { t, word } from '../../lib/i18n';
import type { Family } from '../../lib/states';
import { now, span } from '../../lib/time';
import type { Segment } from './types';

const outcomes: Record<string, Family> = {
  success: 'ok',
  branch: 'ok',
  wait: 'outside',
  retry: 'retry',
  running: 'run',
  skip: 'off',
};

function familyOf(segment: Segment, isLast: boolean): Family {
  if (segment.kind === 'callback') return 'outside';
  if (segment.kind === 'steps') return 'run';
  if (segment.kind !== 'attempt') return 'wait';
  // What may be tried again was trouble all the same, once nothing came of it.
  if (segment.outcome === 'retry' && isLast) return 'bad';
  return segment.outcome === null ? 'off' : (outcomes[segment.outcome] ?? 'bad');
}

function label(segment: Segment): string {
  return segment.kind === 'attempt' ? t('run.attempt', { n: segment.attempt ?? 0 }) : word('run.segment', segment.kind);
}

interface Props {
  segments: Segment[];
  isOver: boolean;
  chosen: number | undefined;
  onChoose: (attempt: number) => void;
}

export function Waterfall({ segments, isOver, chosen, onChoose }: Props) {
  const first = segments[0];
  if (!first) return <p class="body muted">{t('run.no_segments')}</p>;
  const from = Date.parse(first.from);
  const last = segments[segments.length - 1]!;
  // What is under way grows along with the clock; the server is asked again only when something happens.
  const until = (segment: Segment): number => (!isOver && segment === last ? Math.max(Date.parse(segment.to), now.value) : Date.parse(segment.to));
  const whole = Math.max(1, until(last) - from);
  return (
    <ol class="waterfall">
      {segments.map((segment, index) => {
        const begin = Date.parse(segment.from);
        // The instants have whole milliseconds; what is over knows its length better.
        const ms = !isOver && segment === last ? until(segment) - begin : segment.ms;
        const family = familyOf(segment, isOver && segment === last);
        const start = Math.min(99, ((begin - from) / whole) * 100);
        const inside = (
          <>
            <span class="waterfall-label">{label(segment)}</span>
            <span class="waterfall-track" aria-hidden="true">
              <span
                class={`waterfall-bar ${segment.kind} ${family}`}
                style={{ left: `min(${start}%, calc(100% - 6px))`, width: `${Math.min(100 - start, (ms / whole) * 100)}%` }}
              />
            </span>
            <span class="waterfall-told">
              {segment.kind === 'attempt' && segment.outcome && (
                <span class={`waterfall-outcome ${family}`}>{segment.code ?? word('run.outcome', segment.outcome)}</span>
              )}{' '}
              {span(ms)}
            </span>
          </>
        );
        return (
          <li key={index}>
            {segment.attempt === null || segment.kind !== 'attempt' ? (
              <span class="waterfall-row">{inside}</span>
            ) : (
              <button type="button" class="waterfall-row" aria-pressed={segment.attempt === chosen} onClick={() => onChoose(segment.attempt!)}>
                {inside}
              </button>
            )}
          </li>
        );
      })}
      <li class="waterfall-row waterfall-total">
        <span class="waterfall-label">{t('run.total')}</span>
        <span class="waterfall-track" aria-hidden="true" />
        <span class="waterfall-told">{span(whole)}</span>
      </li>
    </ol>
  );
}
