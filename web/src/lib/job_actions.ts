/** What can be done to a job, the same wherever it is shown. */
import { api } from './api';
import { ask, attempt, say, sayError, type Answer } from './feedback';
import { t } from './i18n';
import { href, navigate } from './router';
import type { Job, Run } from './types';

const quoted = (job: Job): { name: string } => ({ name: job.name });

export async function runNow(job: Job, input?: unknown): Promise<boolean> {
  try {
    const run = await api.post<Run>(`jobs/${job.id}/runs`, input === undefined ? undefined : { input });
    say(t('done.run', { id: run.id }), { link: { href: href(`/runs/${run.id}`), text: t('act.open') } });
    return true;
  } catch (error) {
    sayError(error);
    return false;
  }
}

export async function pause(job: Job): Promise<boolean> {
  const answer = await ask({
    title: t('job.pause_ask', quoted(job)),
    body: t('job.pause_what'),
    act: t('act.pause'),
    wantsReason: true,
    wantsUntil: true,
  });
  if (!answer) return false;
  return attempt(() => api.post(`jobs/${job.id}/pause`, given(answer)), t('done.paused', quoted(job)));
}

export const resume = (job: Job): Promise<boolean> =>
  attempt(() => api.post(`jobs/${job.id}/resume`), t('done.resumed', quoted(job)));

export async function remove(job: Job): Promise<boolean> {
  const answer = await ask({
    title: t('job.delete_ask', quoted(job)),
    body: t('job.delete_what'),
    act: t('act.delete'),
    isDangerous: true,
    typed: job.name,
  });
  return answer !== null && attempt(() => api.delete(`jobs/${job.id}`), t('done.deleted', quoted(job)));
}

/** Opens the form for a new job, filled in with this one. */
export const duplicate = (job: Job): void => navigate(href('/jobs/new', { from: job.id }));

/** What an answer says, for a request: nothing of what was left out. */
export const given = (answer: Answer): Partial<Answer> => Object.fromEntries(Object.entries(answer).filter(([, value]) => value));

export const reasoned = (reason: string): { reason: string } | undefined => (reason ? { reason } : undefined);
