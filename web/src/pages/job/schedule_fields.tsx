/** When a job fires. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n';
import { browserZone, fromWall, wall, zoneFor, zones } from '../../lib/time';
import type { Schedule } from '../../lib/types';
import { Card, Field, Segments, TextField } from '../../ui/controls';
import { Instant } from '../../ui/instant';
import type { PartProps } from './form';

const inAnHour = (): string => new Date(Math.ceil(Date.now() / 3_600_000) * 3_600_000).toISOString().replace('.000Z', 'Z');

const fresh: Record<string, () => Schedule | null> = {
  none: () => null,
  cron: () => ({ kind: 'cron', expr: '0 9 * * 1-5', timezone: browserZone }),
  every: () => ({ kind: 'every', every: '5m' }),
  once: () => ({ kind: 'once', run_at: inAnHour() }),
};

export function ScheduleFields({ draft, onDraft, faults }: PartProps) {
  const schedule = draft.schedule ?? null;
  const kind = schedule?.kind ?? 'none';
  // What was typed for another kind comes back when one switches back.
  const [typed, setTyped] = useState<Record<string, Schedule | null>>({ [kind]: schedule });
  const set = (next: Schedule | null): void => {
    setTyped({ ...typed, [next?.kind ?? 'none']: next });
    onDraft({ ...draft, schedule: next });
  };
  const choice = (
    <Segments
      label={t('form.schedule')}
      value={kind}
      options={[
        { value: 'cron', text: t('schedule.kind_cron') },
        { value: 'every', text: t('schedule.kind_every') },
        { value: 'once', text: t('schedule.kind_once') },
        { value: 'none', text: t('schedule.kind_none') },
      ]}
      onChange={(wanted) => set(typed[wanted] ?? fresh[wanted]!())}
    />
  );
  return (
    <Card title={t('form.schedule')} side={choice}>
      <div class="body form">
        {schedule === null && <p class="muted wide">{t('schedule.none_hint')}</p>}
        {schedule?.kind === 'once' && (
          <InstantField label={t('schedule.run_at')} at={schedule.run_at} zone={zoneFor()} error={faults('schedule.run_at')} onChange={(at) => set({ ...schedule, run_at: at ?? '' })} />
        )}
        {schedule?.kind === 'every' && (
          <TextField label={t('schedule.interval')} hint={t('schedule.interval_hint')} value={schedule.every} mono onInput={(every) => set({ ...schedule, every })} error={faults('schedule.every')} />
        )}
        {schedule?.kind === 'cron' && (
          <>
            <TextField label={t('schedule.expr')} hint={t('schedule.expr_hint')} value={schedule.expr} mono onInput={(expr) => set({ ...schedule, expr })} error={faults('schedule.expr')} />
            <TextField label={t('schedule.timezone')} list="zones" value={schedule.timezone ?? ''} onInput={(timezone) => set({ ...schedule, timezone: timezone || undefined })} error={faults('schedule.timezone')} />
            <datalist id="zones">
              {zones().map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </>
        )}
        {schedule && schedule.kind !== 'once' && (
          <>
            <InstantField label={t('schedule.start_at')} at={schedule.start_at} zone={bounds(schedule)} error={faults('schedule.start_at')} onChange={(start_at) => set({ ...schedule, start_at })} />
            <InstantField label={t('schedule.end_at')} at={schedule.end_at} zone={bounds(schedule)} error={faults('schedule.end_at')} onChange={(end_at) => set({ ...schedule, end_at })} />
            <TextField label={t('schedule.jitter')} hint={t('schedule.jitter_hint')} value={schedule.jitter ?? ''} onInput={(jitter) => set({ ...schedule, jitter: jitter || undefined })} error={faults('schedule.jitter')} />
          </>
        )}
      </div>
    </Card>
  );
}

const bounds = (schedule: Schedule): string => (schedule.kind === 'cron' && schedule.timezone) || zoneFor();

interface InstantFieldProps {
  label: string;
  at: string | null | undefined;
  zone: string;
  error?: string;
  onChange: (at: string | undefined) => void;
}

/** An instant, typed on the wall clock of a zone and shown with its offset. */
export function InstantField({ label, at, zone, error, onChange }: InstantFieldProps) {
  const shown = at && !Number.isNaN(Date.parse(at)) ? wall(Date.parse(at), zone) : null;
  return (
    <Field label={`${label} (${zone})`} error={error}>
      {(named) => (
        <>
          <input
            {...named}
            type="datetime-local"
            step={1}
            value={shown ? `${shown.date}T${shown.time}` : ''}
            onChange={(event) => onChange(fromWall(event.currentTarget.value, zone) ?? undefined)}
          />
          {at && (
            <span class="hint">
              <Instant at={at} zone={zone} />
            </span>
          )}
        </>
      )}
    </Field>
  );
}
