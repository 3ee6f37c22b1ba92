/** A run in one line: whose, how it stands, when, and the first line of its error as the link. */
import { t } from '../lib/i18n';
import { href } from '../lib/router';
import type { Run } from '../lib/types';
import { Instant } from './instant';
import { StateMark } from './state';

export const firstLine = (text: string): string => text.split('\n', 1)[0]!;

/** `isOwn` where all are of one job: then the run is named, not the job. */
export function RunLine({ run, isOwn = false }: { run: Run; isOwn?: boolean }) {
  return (
    <li>
      <StateMark state={run.state} />
      <span class="run-line-main">
        <span class="line">
          {isOwn ? (
            <span>{t('run.title', { id: run.id })}</span>
          ) : run.job_id ? (
            <a class="strong" href={href(`/jobs/${run.job_id}`)}>
              {run.job_name ?? t('palette.job', { id: run.job_id })}
            </a>
          ) : (
            <span class="strong">{run.kind}</span>
          )}
          <Instant at={run.ended_at ?? run.due_at} short />
        </span>
        <a class="clip" href={href(`/runs/${run.id}`)} title={run.error}>
          {firstLine(run.error) || t('run.title', { id: run.id })}
        </a>
      </span>
    </li>
  );
}
