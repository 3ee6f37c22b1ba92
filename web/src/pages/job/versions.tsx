/** Every version of a definition: who made it, and what it changed. */
import { useState } from 'preact/hooks';
import { api, ifMatch } from '../../lib/api';
import { draftOf } from '../../lib/definition';
import { ask, attempt } from '../../lib/feedback';
import { t, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import type { Job, JobVersion, Page } from '../../lib/types';
import { Act } from '../../ui/act';
import { Diff, Json } from '../../ui/code';
import { Button, Card } from '../../ui/controls';
import { Empty, Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { pageParams, Paging } from '../../ui/table';

export function Versions({ job }: { job: Job }) {
  const query = pageParams(25);
  const versions = useResource<Page<JobVersion>>((abort) => api.get(`jobs/${job.id}/versions`, query, abort), [job.id, job.version, query]);
  if (!versions.data) return <Pending {...versions} />;
  if (!versions.data.items.length) return <Empty title={t('versions.none')} />;
  return (
    <>
      {versions.data.items.map((version) => (
        <VersionCard key={`${version.version} ${version.at}`} job={job} version={version} />
      ))}
      {versions.data.total > versions.data.page_size && <Paging {...versions.data} />}
    </>
  );
}

function VersionCard({ job, version }: { job: Job; version: JobVersion }) {
  const [isWhole, setWhole] = useState(false);
  const { definition } = version;
  const restore = async (): Promise<void> => {
    const answer = await ask({ title: t('versions.restore_ask', { version: version.version }), act: t('versions.restore') });
    if (!answer || !definition) return;
    await attempt(() => api.patch(`jobs/${job.id}`, draftOf(definition), ifMatch(job.version)), t('done.saved'));
  };
  return (
    <Card
      title={t('versions.title', { version: version.version })}
      side={
        <>
          <span>
            {word('audit', version.action)} · {version.actor} · <Instant at={version.at} />
          </span>
          {definition && <Button text={t('versions.whole')} pressed={isWhole} onClick={() => setWhole(!isWhole)} />}
          {definition && version.version < job.version && <Act text={t('versions.restore')} onClick={() => void restore()} />}
        </>
      }
    >
      <div class="body stack">
        {version.reason && <p>{version.reason}</p>}
        {version.action !== 'job.create' && <Diff changes={version.changes} left={t('diff.before')} right={t('diff.after')} />}
        {version.action === 'job.create' && !isWhole && <p class="muted">{t('versions.first')}</p>}
        {isWhole && <Json value={definition} label={t('job.definition')} />}
      </div>
    </Card>
  );
}
