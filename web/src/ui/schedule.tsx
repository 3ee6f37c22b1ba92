/** When a job runs: how it is written, and what that means on whose clocks, in the server's words. */
import { said, t } from '../lib/i18n';
import type { Job, Schedule } from '../lib/types';
import { Instant } from './instant';

export const zoneOf = (schedule: Schedule | null): string | undefined =>
  schedule?.kind === 'cron' ? schedule.timezone : undefined;

export function ScheduleText({ job: { schedule, schedule_words } }: { job: Job }) {
  if (!schedule) return <span class="muted">{t('schedule.none')}</span>;
  switch (schedule.kind) {
    case 'once':
      return (
        <span class="nowrap">
          {t('schedule.once')} <Instant at={schedule.run_at} short distance={false} />
        </span>
      );
    case 'every':
      return <span class="nowrap">{t('schedule.every', { every: schedule.every })}</span>;
    case 'cron':
      return (
        <span>
          <code class="nowrap">{schedule.expr}</code> {schedule_words && <span class="sub">{said(schedule_words)}</span>}
        </span>
      );
  }
}
