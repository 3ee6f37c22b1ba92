/** How much of a queue may be worked on at once, and how fast it is handed out. */
import { useEffect, useState } from 'preact/hooks';
import { api, ApiError, type Problem } from '../../lib/api';
import { say, sayError } from '../../lib/feedback';
import { t } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { Button, TextField } from '../../ui/controls';
import { Dialog, Pending } from '../../ui/feedback';
import type { QueueSettings } from './types';

const BLANK = { concurrency: '', count: '', per: '1', key_concurrency: '', key_count: '', key_per: '1', reason: '' };
type Draft = typeof BLANK;

const text = (value: number | null | undefined): string => (value === null || value === undefined ? '' : String(value));
const numeral = (value: string): number | null => (value.trim() ? Number(value) : null);
const rate = (count: string, per: string): { count: number; per_sec: number } | null =>
  count.trim() ? { count: Number(count), per_sec: Number(per) || 1 } : null;

export function Limits({ queue, onClose, onDone }: { queue: string; onClose: () => void; onDone: () => void }) {
  const path = `/scheduler/queues/${encodeURIComponent(queue)}`;
  const settings = useResource<QueueSettings>((abort) => api.get(path, {}, abort), [queue]);
  const [draft, setDraft] = useState<Draft>(BLANK);
  const [problems, setProblems] = useState<Problem[]>([]);
  const { data } = settings;
  useEffect(() => {
    if (!data) return;
    setDraft({
      concurrency: text(data.concurrency),
      count: text(data.rate?.count),
      per: text(data.rate?.per_sec ?? 1),
      key_concurrency: text(data.key_concurrency),
      key_count: text(data.key_rate?.count),
      key_per: text(data.key_rate?.per_sec ?? 1),
      reason: '',
    });
  }, [data]);
  const field = (name: keyof Draft, label: string, fault?: string, hint?: string) => (
    <TextField
      label={label}
      hint={hint}
      type={name === 'reason' ? 'text' : 'number'}
      value={draft[name]}
      error={problems.find((problem) => problem.field === fault)?.message}
      onInput={(value) => setDraft({ ...draft, [name]: value })}
    />
  );
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await api.put(path, {
        concurrency: numeral(draft.concurrency),
        rate: rate(draft.count, draft.per),
        key_concurrency: numeral(draft.key_concurrency),
        key_rate: rate(draft.key_count, draft.key_per),
        reason: draft.reason.trim(),
        version: data?.version ?? 0,
      });
      say(t('done.saved'));
      onDone();
      onClose();
    } catch (error) {
      const found = error instanceof ApiError ? error.problems : [];
      setProblems(found);
      if (!found.length) sayError(error);
    }
  };
  return (
    <Dialog title={t('queue.limits_of', { name: queue })} onClose={onClose}>
      {!data ? (
        <Pending {...settings} />
      ) : (
        <form onSubmit={(event) => void submit(event)}>
          <div class="dialog-body">
            <p class="muted">{t('queue.limits_hint')}</p>
            <div class="form">
              {field('concurrency', t('queue.concurrency'), 'concurrency')}
              {field('key_concurrency', t('queue.key_concurrency'), 'key_concurrency')}
              {field('count', t('queue.rate'), 'rate.count')}
              {field('per', t('queue.per'), 'rate.per_sec')}
              {field('key_count', t('queue.key_rate'), 'key_rate.count')}
              {field('key_per', t('queue.per'), 'key_rate.per_sec')}
            </div>
            {field('reason', t('ask.reason'), 'reason')}
          </div>
          <footer>
            <Button text={t('act.cancel')} onClick={onClose} />
            <Button text={t('act.save')} kind="primary" submit />
          </footer>
        </form>
      )}
    </Dialog>
  );
}
