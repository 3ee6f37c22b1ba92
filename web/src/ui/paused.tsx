/** That a job is paused: until when, if the pause ends by itself, and why. Nothing for one that is not. */
import { t } from '../lib/i18n';
import type { Job } from '../lib/types';
import { Chip } from './controls';
import { Instant } from './instant';
import { zoneOf } from './schedule';

export function Paused({ job }: { job: Job }) {
  if (job.enabled) return null;
  return (
    <>
      <Chip text={t('state.paused')} tone="warn" />{' '}
      <span class="sub">
        {job.paused_until && (
          <>
            {t('job.until')} <Instant at={job.paused_until} zone={zoneOf(job.schedule)} short />{' '}
          </>
        )}
        {job.pause_reason}
      </span>
    </>
  );
}
