/** Fill in slots of the past that have no run: looked at first, then made. */
import { useState } from 'preact/hooks';
import { api } from '../../lib/api';
import { say, sayError, wordsOf } from '../../lib/feedback';
import { t, tn } from '../../lib/i18n';
import { useResource, useRested } from '../../lib/resource';
import { nowMs, zoneFor } from '../../lib/time';
import type { Job } from '../../lib/types';
import { Button } from '../../ui/controls';
import { Dialog } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { zoneOf } from '../../ui/schedule';
import { InstantField } from './schedule_fields';

interface Found {
  count: number;
  sample: string[];
  run_ids: number[];
}

const instant = (ms: number): string => new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z');

export function Backfill({ job, onClose, onDone }: { job: Job; onClose: () => void; onDone: () => void }) {
  const [since, setSince] = useState<string | undefined>(() => instant(nowMs() - 86_400_000));
  const [until, setUntil] = useState<string | undefined>(() => instant(nowMs()));
  const [isBusy, setBusy] = useState(false);
  const wanted = useRested({ since, until }, 200);
  const zone = zoneOf(job.schedule);
  const found = useResource<Found>(
    wanted.since && wanted.until ? () => api.post(`jobs/${job.id}/backfill`, { ...wanted, dry_run: true }) : null,
    [wanted],
  );
  const fill = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      const made = await api.post<Found>(`jobs/${job.id}/backfill`, { since, until });
      say(tn('backfill.done', made.count));
      onDone();
    } catch (error) {
      sayError(error);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t('backfill.title', { name: job.name })} onClose={onClose}>
      <form onSubmit={(event) => void fill(event)}>
        <div class="dialog-body">
          <p>{t('backfill.text')}</p>
          <InstantField label={t('backfill.since')} at={since} zone={zone ?? zoneFor()} onChange={setSince} />
          <InstantField label={t('backfill.until')} at={until} zone={zone ?? zoneFor()} onChange={setUntil} />
          <div aria-live="polite" class="stack">
            {found.error ? (
              <p class="problem">{wordsOf(found.error)}</p>
            ) : (
              found.data && (
                <>
                  <strong>{tn('backfill.found', found.data.count)}</strong>
                  <ul class="fires choices">
                    {found.data.sample.map((at) => (
                      <li key={at}>
                        <Instant at={at} zone={zone} withDay />
                      </li>
                    ))}
                    {found.data.count > found.data.sample.length && <li class="muted">…</li>}
                  </ul>
                </>
              )
            )}
          </div>
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={tn('backfill.act', found.data?.count ?? 0)} kind="primary" submit disabled={isBusy || found.error !== undefined || !found.data?.count} />
        </footer>
      </form>
    </Dialog>
  );
}
