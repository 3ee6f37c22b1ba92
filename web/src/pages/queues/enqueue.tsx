/** Puts an item into a queue: any work, or something to be done about an object. */
import { useState } from 'preact/hooks';
import { api, ApiError, type Problem } from '../../lib/api';
import { say, sayError } from '../../lib/feedback';
import { t, word } from '../../lib/i18n';
import { href } from '../../lib/router';
import { Button, Segments, Select, TextField } from '../../ui/controls';
import { Dialog } from '../../ui/feedback';
import { runOf, type Item } from './types';

export const OBJECT_TYPES = ['memory', 'experience', 'cognition'];
export const ACTIONS = ['verify', 'revalidate', 'decay', 'archive', 'reinstate-check'];
const PRIORITIES = ['low', 'medium', 'high'];

interface Draft {
  queue: string;
  type: string;
  object_type: string;
  object_id: string;
  action: string;
  payload: string;
  delay_sec: string;
  priority: string;
  max_attempts: string;
  idempotency_key: string;
  group_key: string;
}

export function Enqueue({ queue, onClose, onDone }: { queue: string; onClose: () => void; onDone: () => void }) {
  const [isObject, setObject] = useState(false);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [draft, setDraft] = useState<Draft>({
    queue,
    type: '',
    object_type: OBJECT_TYPES[0]!,
    object_id: '',
    action: ACTIONS[0]!,
    payload: '{}',
    delay_sec: '0',
    priority: 'medium',
    max_attempts: '3',
    idempotency_key: '',
    group_key: '',
  });
  const set = (name: keyof Draft) => (value: string): void => setDraft({ ...draft, [name]: value });
  const fault = (name: string): string | undefined => problems.find((problem) => problem.field === name)?.message;
  const options = (values: string[], prefix: string) => values.map((value) => ({ value, text: word(prefix, value) }));
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const item = await api.post<Item & { deduplicated: boolean }>('/scheduler/jobs', said(draft, isObject));
      say(t(item.deduplicated ? 'queue.was_there' : 'queue.enqueued', { id: item.job_id }), {
        link: { href: href(`/runs/${runOf(item.job_id)}`), text: t('act.open') },
      });
      onDone();
      onClose();
    } catch (error) {
      const found = error instanceof SyntaxError ? [{ field: 'payload', message: error.message }] : error instanceof ApiError ? error.problems : [];
      setProblems(found);
      if (!found.length) sayError(error);
    }
  };
  return (
    <Dialog title={t('queue.enqueue')} onClose={onClose} size="wide">
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">
          <Segments
            label={t('queue.what')}
            value={isObject ? 'object' : 'work'}
            options={[
              { value: 'work', text: t('queue.any_work') },
              { value: 'object', text: t('queue.about_object') },
            ]}
            onChange={(value) => setObject(value === 'object')}
          />
          <div class="form">
            {isObject ? (
              <>
                <Select label={t('queue.object_type')} value={draft.object_type} options={options(OBJECT_TYPES, 'object')} onChange={set('object_type')} />
                <TextField label={t('queue.object_id')} value={draft.object_id} error={fault('object_id')} onInput={set('object_id')} required />
                <Select label={t('queue.action')} value={draft.action} options={options(ACTIONS, 'action')} onChange={set('action')} />
              </>
            ) : (
              <>
                <TextField label={t('form.queue')} value={draft.queue} error={fault('queue')} onInput={set('queue')} required />
                <TextField label={t('queue.type')} hint={t('queue.type_hint')} value={draft.type} error={fault('type')} onInput={set('type')} />
              </>
            )}
            <TextField label={t('queue.delay')} type="number" value={draft.delay_sec} error={fault('delay_sec') ?? fault('run_at')} onInput={set('delay_sec')} />
            <Select label={t('form.priority')} value={draft.priority} options={options(PRIORITIES, 'priority')} onChange={set('priority')} />
            <TextField label={t('form.max_attempts')} type="number" value={draft.max_attempts} error={fault('max_attempts')} onInput={set('max_attempts')} />
            <TextField label={t('queue.key')} hint={t('queue.key_hint')} value={draft.idempotency_key} error={fault('idempotency_key')} onInput={set('idempotency_key')} />
            <TextField label={t('queue.group_key')} value={draft.group_key} error={fault('group_key')} onInput={set('group_key')} />
            <TextField label={t('queue.payload_json')} value={draft.payload} error={fault('payload')} rows={8} mono wide onInput={set('payload')} />
          </div>
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={t('queue.enqueue')} kind="primary" submit />
        </footer>
      </form>
    </Dialog>
  );
}

/** What is sent; throws a SyntaxError if the payload is no JSON. */
function said(draft: Draft, isObject: boolean): Record<string, unknown> {
  const delay = Number(draft.delay_sec) || 0;
  const about = isObject
    ? {
        object_type: draft.object_type,
        object_id: draft.object_id,
        action: draft.action,
        run_at: new Date(Date.now() + delay * 1000).toISOString(),
      }
    : { queue: draft.queue, ...(draft.type ? { type: draft.type } : {}), delay_sec: delay };
  return {
    ...about,
    payload: draft.payload.trim() ? (JSON.parse(draft.payload) as unknown) : null,
    priority: draft.priority,
    max_attempts: Number(draft.max_attempts) || 0,
    ...(draft.idempotency_key ? { idempotency_key: draft.idempotency_key } : {}),
    ...(draft.group_key ? { group_key: draft.group_key } : {}),
  };
}
