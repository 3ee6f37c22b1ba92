/** A schedule in one line: how it is written, and on whose clocks. */
import { t } from '../lib/i18n';
import type { Schedule } from '../lib/types';
import { Instant } from './instant';

export const zoneOf = (schedule: Schedule | null): string | undefined =>
  schedule?.kind === 'cron' ? schedule.timezone : undefined;

export function ScheduleText({ schedule }: { schedule: Schedule | null }) {
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
        <span class="nowrap">
          <code>{schedule.expr}</code> <span class="sub">({schedule.timezone})</span>
        </span>
      );
  }
}
