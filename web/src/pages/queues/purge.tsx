/** Takes what waits in a queue out for good, once somebody has typed its name. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { number, t, tn } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { Operation } from '../../lib/types';
import type { OperationInput } from '../../ui/bulk';
import { Button, Check, TextField } from '../../ui/controls';
import { Dialog } from '../../ui/feedback';

interface Props {
  queue: string;
  onClose: () => void;
  onGo: (input: OperationInput) => void;
}

const WAITING = ['WAITING', 'SCHEDULED', 'RETRYING'];

export function Purge({ queue, onClose, onGo }: Props) {
  const [draft, setDraft] = useState({ dead: false, held: false, typed: '', reason: '' });
  const set = (change: Partial<typeof draft>): void => setDraft({ ...draft, ...change });
  const state = [...WAITING, ...(draft.held ? ['RUNNING'] : []), ...(draft.dead ? ['DEAD_LETTER'] : [])];
  const input: OperationInput = { action: 'purge', filter: { queue, state } };
  const tried = useResource<Operation>(() => api.post('operations', { ...input, dry_run: true }), [queue, state]);
  const total = tried.data?.total ?? 0;
  return (
    <Dialog title={t('queue.purge_title', { name: queue })} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onGo({ ...input, ...(draft.reason.trim() ? { reason: draft.reason.trim() } : {}) });
        }}
      >
        <div class="dialog-body">
          <p>{tn('queue.would_purge', total)}</p>
          <Check label={t('queue.purge_dead')} checked={draft.dead} onChange={(dead) => set({ dead })} />
          <Check label={t('queue.purge_held')} checked={draft.held} onChange={(held) => set({ held })} />
          <TextField label={t('ask.reason')} value={draft.reason} onInput={(reason) => set({ reason })} />
          <TextField label={t('ask.type', { text: queue })} value={draft.typed} onInput={(typed) => set({ typed })} />
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={t('queue.purge_n', { n: number(total) })} kind="danger" submit disabled={!total || draft.typed !== queue} />
        </footer>
      </form>
    </Dialog>
  );
}
