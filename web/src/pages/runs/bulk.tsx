/** Retry or cancel many runs: the selected ones, or all that the filter finds. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { ask, sayError } from '../../lib/feedback';
import { t, tn, word } from '../../lib/i18n';
import type { Operation } from '../../lib/types';
import { Act } from '../../ui/act';
import type { OperationInput } from '../../ui/bulk';
import { Button } from '../../ui/controls';
import { filterOfUrl, stretchOfUrl } from './filter';

interface Props {
  selected: Set<number | string>;
  clear: () => void;
  begin: (input: OperationInput) => Promise<boolean>;
  total: number;
}

export function RunsBulk({ selected, clear, begin, total }: Props) {
  const [areAllMeant, setAllMeant] = useState(false);
  if (!selected.size) return null;
  const isAll = areAllMeant && total > selected.size;
  const act = async (action: 'retry' | 'cancel'): Promise<void> => {
    const subject = isAll ? { filter: wanted() } : { ids: [...selected].map(Number) };
    try {
      // Which of them it fits is for the server to say, before anybody agrees to it.
      const tried = isAll ? await api.post<Operation>('operations', { action, ...subject, dry_run: true }) : null;
      const answer = await ask({
        title: tn(`runs.ask_${action}`, tried?.total ?? selected.size),
        body: t(`runs.what_${action}`),
        act: word('bulk.action', action),
        isDangerous: action === 'cancel',
        wantsReason: true,
      });
      if (answer) await begin({ action, ...subject, ...(answer.reason ? { reason: answer.reason } : {}) });
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <div class="bulk" role="region" aria-label={t('bulk.label')}>
      <strong>{isAll ? tn('bulk.all', total) : tn('bulk.selected', selected.size)}</strong>
      {total > selected.size && (
        <Button text={isAll ? t('bulk.only_selected') : tn('bulk.take_all', total)} quiet onClick={() => setAllMeant(!isAll)} />
      )}
      <span class="grow" />
      <Act text={t('act.retry')} icon="retry" onClick={() => void act('retry')} />
      <Act text={t('act.cancel_runs')} icon="stop" onClick={() => void act('cancel')} />
      <Button icon="close" label={t('bulk.clear')} quiet onClick={clear} />
    </div>
  );
}

function wanted(): Record<string, unknown> {
  const { job_id: job, ...filter } = filterOfUrl();
  return { ...filter, ...stretchOfUrl(), ...(job ? { job_id: Number(job) } : {}) };
}
