/** Where runs lead, and what they are called. */
import { t, word } from './i18n';
import { href } from './router';
import type { Run } from './types';

/** A chain's run is seen best as its graph. */
export const runHref = (run: Pick<Run, 'id' | 'kind' | 'job_id' | 'parent_id'>): string =>
  run.kind === 'chain' && run.job_id && !run.parent_id ? href(`/chains/${run.job_id}/runs/${run.id}`) : href(`/runs/${run.id}`);

/** Whose run it is: the name of its job, and of its place in a chain; of an item its type. */
export function runName(run: Pick<Run, 'job_name' | 'job_id' | 'kind' | 'step'>): string {
  const job = run.job_name ?? (run.job_id ? t('palette.job', { id: run.job_id }) : word('kind', run.kind));
  return run.step ? `${job} · ${run.step}` : job;
}

/** Why it stands where it does, if that is worth a word: a chain always follows from its parts. */
export const reasonOf = (run: Pick<Run, 'reason'>): string | null => (run.reason === 'children' ? null : run.reason);

/** How late it began, in ms; null until it does. */
export const delayOf = (run: Pick<Run, 'started_at' | 'planned_at'>): number | null =>
  run.started_at ? Math.max(0, Date.parse(run.started_at) - Date.parse(run.planned_at)) : null;

const AGAIN = new Set(['FAILED', 'TIMEOUT', 'CANCELED', 'DEAD_LETTER']);
export const mayRetry = (state: string): boolean => AGAIN.has(state);
export const mayComplete = (state: string): boolean => AGAIN.has(state) || state === 'RUNNING' || state === 'CALLBACK_PENDING';
