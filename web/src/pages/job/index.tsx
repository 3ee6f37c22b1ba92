/** A job: how it fares, its runs, its fire log, its definition and who changed it. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { t, word, type Key } from '../../lib/i18n';
import { duplicate, pause, remove, resume, runNow } from '../../lib/job_actions';
import { useKey } from '../../lib/keys';
import { useResource } from '../../lib/resource';
import { href, navigate, param, setQuery } from '../../lib/router';
import type { Job } from '../../lib/types';
import { useCommands } from '../../shell/palette';
import { Act } from '../../ui/act';
import { Menu, PageHead, Tabs } from '../../ui/controls';
import { Pending } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { Paused } from '../../ui/paused';
import { ScheduleText, zoneOf } from '../../ui/schedule';
import { Activity } from './activity';
import { Backfill } from './backfill';
import { EditDefinition } from './edit';
import { FireLog } from './fire_log';
import { RunEdited } from './run_edited';
import { JobRuns } from './runs';
import { Summary } from './summary';
import { Versions } from './versions';

const tabs: [string, Key][] = [
  ['summary', 'job.summary'],
  ['runs', 'nav.runs'],
  ['fires', 'job.fires'],
  ['definition', 'job.definition'],
  ['versions', 'job.versions'],
  ['activity', 'job.activity'],
];

export function JobPage({ id }: { id: string }) {
  const job = useResource<Job>((abort) => api.get(`jobs/${id}`, {}, abort), [id], {
    live: ['job', 'run'],
    wants: (event) => String(event.id) === id || String(event.patch?.job_id) === id,
  });
  return job.data ? <Shown job={job.data} refresh={job.refresh} set={job.set} /> : <Pending {...job} />;
}

interface ShownProps {
  job: Job;
  refresh: () => void;
  set: (job: Job) => void;
}

function Shown({ job, refresh, set }: ShownProps) {
  const [open, setOpen] = useState<'edited' | 'backfill' | null>(null);
  const tab = param('tab', 'summary');
  const then = (done: Promise<boolean>): void => void done.then((isDone) => isDone && refresh());
  useKey('r', 'key.run_now', () => then(runNow(job)), !readOnly.value);
  useKey('e', 'key.run_edited', () => setOpen('edited'), !readOnly.value);
  useCommands(
    readOnly.value ? [] : [
      { text: `${t('act.run')}: ${job.name}`, icon: 'play', act: () => then(runNow(job)) },
      job.enabled
        ? { text: `${t('act.pause')}: ${job.name}`, icon: 'pause', act: () => then(pause(job)) }
        : { text: `${t('act.resume')}: ${job.name}`, icon: 'play', act: () => then(resume(job)) },
    ],
    [job.id, job.enabled, job.name, readOnly.value],
  );
  return (
    <>
      <PageHead
        title={job.name}
        trail={[{ href: href('/jobs'), text: t('nav.jobs') }]}
        side={
          <>
            <Act text={t('act.run')} icon="play" kind="primary" onClick={() => then(runNow(job))} />
            {job.enabled ? (
              <Act text={t('act.pause')} icon="pause" onClick={() => then(pause(job))} />
            ) : (
              <Act text={t('act.resume')} icon="play" onClick={() => then(resume(job))} />
            )}
            {!readOnly.value && (
              <Menu
                label={t('jobs.acts', { name: job.name })}
                text={t('act.more')}
                items={[
                  { text: t('act.run_edited'), icon: 'edit', onClick: () => setOpen('edited') },
                  { text: t('act.backfill'), icon: 'clock', onClick: () => setOpen('backfill') },
                  { text: t('act.duplicate'), icon: 'copy', onClick: () => duplicate(job) },
                  {
                    text: t('act.delete'),
                    icon: 'trash',
                    isDangerous: true,
                    onClick: () => void remove(job).then((isDone) => isDone && navigate(href('/jobs'))),
                  },
                ]}
              />
            )}
          </>
        }
      >
        <div class="meta">
          <Paused job={job} />
          <span>{word('kind', job.target.kind)}</span>
          <ScheduleText job={job} />
          {job.next_fire_at && (
            <span>
              {t('jobs.next')} <Instant at={job.next_fire_at} zone={zoneOf(job.schedule)} short />
            </span>
          )}
          {job.target.kind === 'chain' && <a href={href(`/chains/${job.id}`)}>{t('job.as_chain')}</a>}
          {job.tags.map((tag) => (
            <a key={tag} class="chip" href={href('/jobs', { tag })}>
              {tag}
            </a>
          ))}
        </div>
        {job.description && <p>{job.description}</p>}
      </PageHead>
      <Tabs
        label={job.name}
        value={tab}
        tabs={tabs.map(([key, name]) => ({ key, text: t(name) }))}
        onChange={(key) => navigate(href(`/jobs/${job.id}`, { tab: key === 'summary' ? '' : key }))}
      />
      <div role="tabpanel" aria-label={t(tabs.find(([key]) => key === tab)?.[1] ?? 'job.summary')} class="stack">
        {tab === 'runs' ? (
          <JobRuns job={job} />
        ) : tab === 'fires' ? (
          <FireLog job={job} />
        ) : tab === 'definition' ? (
          <EditDefinition key={job.id} job={job} onSaved={set} />
        ) : tab === 'versions' ? (
          <Versions job={job} />
        ) : tab === 'activity' ? (
          <Activity job={job} />
        ) : (
          <Summary job={job} />
        )}
      </div>
      {open === 'edited' && <RunEdited job={job} onClose={() => setOpen(null)} />}
      {open === 'backfill' && (
        <Backfill
          job={job}
          onClose={() => setOpen(null)}
          onDone={() => {
            setOpen(null);
            setQuery({ tab: 'runs' }, { replace: false });
          }}
        />
      )}
    </>
  );
}
