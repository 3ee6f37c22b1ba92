/** The last outcomes of a job as dots, and how long its runs took as bars. */
import { t, word } from '../lib/i18n';
import { href, navigate } from '../lib/router';
import { familyOf } from '../lib/states';
import { span } from '../lib/time';

interface Outcome {
  run_id: number;
  state: string;
}

/** How many of each state, in words: what a picture says to those who do not see it. */
export function summary(states: string[]): string {
  const counts = new Map<string, number>();
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${word('state', state)}`).join(', ');
}

// A picture is one thing to screen readers, so what is in it are no links; the list of runs has those.
const toRun = (id: number) => (event: Event): void => {
  event.stopPropagation();
  navigate(href(`/runs/${id}`));
};

/** Newest last, as one reads; each leads to its run. */
export function Dots({ outcomes }: { outcomes: Outcome[] }) {
  if (!outcomes.length) return <span class="muted">–</span>;
  return (
    <span class="dots" role="img" aria-label={summary(outcomes.map((each) => each.state))}>
      {[...outcomes].reverse().map((each) => (
        <i
          key={each.run_id}
          class={`dot ${familyOf(each.state)}`}
          title={`${word('state', each.state)} · ${t('run.title', { id: each.run_id })}`}
          onClick={toRun(each.run_id)}
        />
      ))}
    </span>
  );
}

export interface Took extends Outcome {
  ms: number | null;
  at: string;
}

/** Durations, oldest first; each bar leads to its run. */
export function Trend({ runs }: { runs: Took[] }) {
  const longest = Math.max(1, ...runs.map((run) => run.ms ?? 0));
  return (
    <div class="trend">
      <span class="trend-top">{span(longest)}</span>
      <div class="trend-bars" role="img" aria-label={t('job.trend_said', { said: summary(runs.map((run) => run.state)), longest: span(longest) })}>
        {runs.map((run) => (
          <i
            key={run.run_id}
            class={`bar ${familyOf(run.state)}`}
            style={{ height: `${Math.max(4, ((run.ms ?? 0) / longest) * 100)}%` }}
            title={`${t('run.title', { id: run.run_id })} · ${word('state', run.state)} · ${span(run.ms)}`}
            onClick={toRun(run.run_id)}
          />
        ))}
      </div>
    </div>
  );
}
