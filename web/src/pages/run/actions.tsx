/** What can be done about a run, by button and by key. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { ask, attempt as tried, copy, say } from '../../lib/feedback';
import { t } from '../../lib/i18n';
import { reasoned } from '../../lib/job_actions';
import { useKey } from '../../lib/keys';
import { href, navigate } from '../../lib/router';
import { mayComplete, mayRetry } from '../../lib/run_links';
import { isFinal } from '../../lib/states';
import type { Attempt, Run } from '../../lib/types';
import { Act } from '../../ui/act';
import { Button, Menu, type MenuItem } from '../../ui/controls';
import { JsonDialog } from '../../ui/json_dialog';
import { curlOf } from './curl';

interface Props {
  run: Run;
  attempt: Attempt | undefined;
  trace: string;
  refresh: () => void;
}

export function RunActions({ run, attempt, trace, refresh }: Props) {
  const [open, setOpen] = useState<'edit' | 'complete' | 'payload' | null>(null);
  const isItem = run.kind === 'item';
  // A step is begun again by its chain; only a run of its own can be asked for once more.
  const mayRunAgain = run.job_id !== null && run.parent_id === null && !isItem && !readOnly.value;
  const curl = attempt?.request || (mayRunAgain && run.job_id) ? (): void => void copy(curlOf(run, attempt)) : null;
  const again = async (input: unknown): Promise<void> => {
    const made = await api.post<Run>(`jobs/${run.job_id}/runs`, input === null || input === undefined ? undefined : { input });
    say(t('done.run', { id: made.id }));
    navigate(href(`/runs/${made.id}`));
  };
  const retry = (): Promise<boolean> => act('retry', 'run.ask_retry', 'act.retry', 'done.retried');
  const cancel = (): Promise<boolean> => act('cancel', 'run.ask_cancel', 'act.cancel_run', 'done.canceled', true);
  const act = async (
    verb: 'retry' | 'cancel',
    title: 'run.ask_retry' | 'run.ask_cancel',
    word: 'act.retry' | 'act.cancel_run',
    done: 'done.retried' | 'done.canceled',
    isDangerous = false,
  ): Promise<boolean> => {
    const answer = await ask({ title: t(title, { id: run.id }), act: t(word), wantsReason: true, isDangerous });
    if (!answer) return false;
    const isDone = await tried(() => api.post(`runs/${run.id}/${verb}`, reasoned(answer.reason) ?? {}), t(done, { id: run.id }));
    if (isDone) refresh();
    return isDone;
  };
  useKey('r', 'key.run_again', () => void tried(() => again(run.input)), mayRunAgain);
  useKey('e', 'key.run_edited', () => setOpen('edit'), mayRunAgain);
  useKey('c', 'key.copy_curl', () => curl?.(), curl !== null);
  const more: MenuItem[] = [
    ...(mayComplete(run.state) && !readOnly.value ? [{ text: t('act.complete'), icon: 'ok' as const, onClick: () => setOpen('complete') }] : []),
    { text: t('run.copy_id'), icon: 'copy', onClick: () => void copy(String(run.id)) },
    { text: t('run.copy_link'), icon: 'copy', onClick: () => void copy(location.href) },
    ...(trace ? [{ text: t('run.copy_trace'), icon: 'copy' as const, onClick: () => void copy(trace) }] : []),
  ];
  return (
    <>
      {mayRetry(run.state) && (
        <Act text={t('act.retry')} icon="retry" kind="primary" onClick={() => void retry()} />
      )}
      {mayRetry(run.state) && isItem && (
        <Act text={t('run.retry_edited')} icon="edit" onClick={() => setOpen('payload')} />
      )}
      {!isFinal(run.state) && run.state !== 'STOPPING' && (
        <Act text={t('act.cancel_run')} icon="stop" onClick={() => void cancel()} />
      )}
      {mayRunAgain && (
        <>
          <Button text={t('act.run_again')} icon="play" title={t('run.again_key')} onClick={() => void tried(() => again(run.input))} />
          <Button text={t('act.run_edited')} icon="edit" title={t('run.edited_key')} onClick={() => setOpen('edit')} />
        </>
      )}
      {curl && <Button text={t('run.copy_curl')} icon="copy" title={t('run.curl_key')} onClick={curl} />}
      <Menu label={t('act.more')} items={more} />
      {open === 'edit' && (
        <JsonDialog
          title={t('run.edited_title', { name: run.job_name ?? run.id })}
          label={t('run.input')}
          hint={t('run.input_hint')}
          value={run.input ?? undefined}
          act={t('act.run')}
          onClose={() => setOpen(null)}
          send={again}
        />
      )}
      {open === 'complete' && (
        <JsonDialog
          title={t('run.complete_title', { id: run.id })}
          label={t('run.artifact')}
          hint={t('run.artifact_hint')}
          act={t('act.complete_done')}
          reason="needed"
          onClose={() => setOpen(null)}
          send={async (artifact, reason) => {
            await api.post(`runs/${run.id}/complete`, { reason, ...(artifact === undefined ? {} : { artifact }) });
            say(t('done.completed', { id: run.id }));
            refresh();
          }}
        />
      )}
      {open === 'payload' && (
        <JsonDialog
          title={t('run.retry_edited')}
          label={t('queue.payload')}
          value={payloadOf(run)}
          act={t('act.retry')}
          onClose={() => setOpen(null)}
          send={async (payload) => {
            await api.post(`/scheduler/jobs/job_${run.id}/requeue`, payload === undefined ? {} : { payload });
            say(t('done.retried', { id: run.id }));
            refresh();
          }}
        />
      )}
    </>
  );
}

/** The payload of an item stands in its input beside what the queue needs to know. */
const payloadOf = (run: Run): unknown => (run.input as { payload?: unknown } | null)?.payload;
