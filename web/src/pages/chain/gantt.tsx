/** When each step of a chain's run was at work. */
import { t, tn, word } from '../../lib/i18n';
import { familyOf, isFinal } from '../../lib/states';
import { now, span } from '../../lib/time';
import type { Run } from '../../lib/types';
import { StateMark } from '../../ui/state';
import type { Step } from './types';

const MOST = 300;
const TICKS = [0, 0.25, 0.5, 0.75, 1];

interface Props {
  run: Run;
  steps: Step[];
  chosen?: string;
  onChoose: (id: string) => void;
}

export function Gantt({ run, steps, chosen, onChoose }: Props) {
  const from = Date.parse(run.started_at ?? run.created_at);
  const until = Math.max(from + 1, isFinal(run.state) && run.ended_at ? Date.parse(run.ended_at) : now.value);
  const place = (at: number): number => Math.max(0, Math.min(100, ((at - from) / (until - from)) * 100));
  return (
    <div class="gantt">
      <div class="gantt-row gantt-axis" aria-hidden="true">
        <span />
        <span class="gantt-track">
          {TICKS.map((part) => (
            <span key={part} style={{ left: `${part * 100}%` }}>
              {span((until - from) * part)}
            </span>
          ))}
        </span>
        <span />
      </div>
      {steps.slice(0, MOST).map((step) => {
        const begin = step.started_at ? Date.parse(step.started_at) : null;
        const end = step.ended_at ? Date.parse(step.ended_at) : until;
        const start = begin === null ? 0 : place(begin);
        return (
          <button
            key={step.id}
            type="button"
            class="gantt-row"
            aria-pressed={step.id === chosen}
            onClick={() => onChoose(step.id)}
          >
            <span class="gantt-label">
              <StateMark state={step.state} /> {step.id}
            </span>{' '}
            <span class="gantt-track">
              {begin !== null && (
                <span
                  class={`gantt-bar ${familyOf(step.state)}`}
                  style={{ left: `min(${start}%, calc(100% - 6px))`, width: `${place(end) - start}%` }}
                />
              )}
            </span>
            <span class="gantt-told">{begin === null ? word('state', step.state) : span(end - begin)}</span>
          </button>
        );
      })}
      {steps.length > MOST && <p class="body muted">{tn('chain.more_steps', steps.length - MOST)}</p>}
      {steps.length === 0 && <p class="body muted">{t('chain.no_steps')}</p>}
    </div>
  );
}
