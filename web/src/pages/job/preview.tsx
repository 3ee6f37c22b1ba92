/** When a schedule fires: in words, its next instants, and what about it tends to surprise. The server works it out. */
import { api, ApiError } from '../../lib/api';
import { wordsOf } from '../../lib/feedback';
import { said, t } from '../../lib/i18n';
import { useResource, useRested } from '../../lib/resource';
import type { Preview, Schedule } from '../../lib/types';
import { Card } from '../../ui/controls';
import { Icon } from '../../ui/icon';
import { Instant } from '../../ui/instant';
import { zoneOf } from '../../ui/schedule';

export function SchedulePreview({ schedule }: { schedule: Schedule | null }) {
  const wanted = useRested(schedule, 200);
  const preview = useResource<Preview>(
    wanted ? () => api.post('schedules/preview', { schedule: wanted, count: 10 }) : null,
    [wanted],
  );
  return (
    <Card title={t('preview.title')} class="preview">
      <div class="body stack" aria-live="polite">
        {!schedule ? (
          <p class="muted">{t('preview.none')}</p>
        ) : preview.error ? (
          <p class="problem">{preview.error instanceof ApiError ? preview.error.message : wordsOf(preview.error)}</p>
        ) : (
          preview.data && <Shown preview={preview.data} zone={zoneOf(schedule)} />
        )}
      </div>
    </Card>
  );
}

function Shown({ preview, zone }: { preview: Preview; zone?: string }) {
  return (
    <>
      <p class="strong">{said(preview.words)}</p>
      {preview.normalized && (
        <p class="small muted">
          {t('preview.stored')} <code>{preview.normalized}</code>
        </p>
      )}
      {preview.lints.map((lint) => (
        <p key={lint.code + lint.message.en} class="lint">
          <Icon name="warn" size={14} /> {said(lint.message)}
        </p>
      ))}
      <Fires fires={preview.fires} zone={zone} />
    </>
  );
}

/** The next instants, with what a change of clocks does to them. */
export function Fires({ fires, zone }: { fires: Preview['fires']; zone?: string }) {
  if (!fires.length) return <p class="problem">{t('preview.never')}</p>;
  return (
    <ol class="fires">
      {fires.map((fire) => (
        <li key={fire.at}>
          <Instant at={fire.at} zone={zone} withDay />
          {fire.dst && (
            <div class="lint small">
              <Icon name="warn" size={12} /> {said(fire.dst)}
            </div>
          )}
        </li>
      ))}
    </ol>
  );
}
