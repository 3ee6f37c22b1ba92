/** How a job fares: durations, success, the next fires, what it is. */
import { Trend } from '../../charts/dots';
import { api } from '../../lib/api';
import { said, t, tn, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href } from '../../lib/router';
import { scheduleOf } from '../../lib/definition';
import { isFinal } from '../../lib/states';
import { span } from '../../lib/time';
import type { Job, Outcomes, Page, Preview, Run } from '../../lib/types';
import { Card, Facts } from '../../ui/controls';
import { Empty, Pending } from '../../ui/feedback';
import { Icon } from '../../ui/icon';
import { Instant } from '../../ui/instant';
import { RunLine } from '../../ui/run_line';
import { zoneOf } from '../../ui/schedule';
import { StateBadge } from '../../ui/state';
import { Fires } from './preview';

export function Summary({ job }: { job: Job }) {
  const runs = useResource<Page<Run>>((abort) => api.get(`jobs/${job.id}/runs`, { page_size: 60 }, abort), [job.id], {
    live: ['run'],
    wants: (event) => event.patch?.job_id === job.id,
  });
  const outcomes = useResource<{ items: Outcomes[] }>((abort) => api.get('jobs/outcomes', { ids: job.id }, abort), [job.id], {
    live: ['run'],
    wants: (event) => event.patch?.job_id === job.id,
    pace: 3000,
  });
  const found = outcomes.data?.items[0];
  const ended = (runs.data?.items ?? []).filter((run) => isFinal(run.state) && run.duration_ms !== null);
  const failed = (runs.data?.items ?? []).filter((run) => run.error).slice(0, 5);
  return (
    <div class="columns">
      <div class="stack">
        <Card title={t('job.durations')} side={ended.length > 0 && <span class="muted small">{tn('job.last_runs', ended.length)}</span>}>
          <div class="body">
            {!runs.data ? (
              <Pending {...runs} />
            ) : ended.length ? (
              <Trend runs={ended.map((run) => ({ run_id: run.id, state: run.state, ms: run.duration_ms, at: run.ended_at! })).reverse()} />
            ) : (
              <Empty title={t('job.no_runs')} text={t('job.no_runs_text')} />
            )}
          </div>
        </Card>
        <Card title={t('job.figures')}>
          <div class="body">
            <Facts
              rows={[
                [t('job.success_rate'), found?.success_rate == null ? '–' : `${(found.success_rate * 100).toFixed(found.success_rate === 1 ? 0 : 1)} %`],
                ['p95', span(found?.p95_ms)],
                [t('jobs.last'), job.last_run ? <LastRun run={job.last_run} /> : '–'],
                [t('job.created'), <Instant at={job.created_at} />],
                [t('job.updated'), <Instant at={job.updated_at} />],
                ...(job.paused_at ? [[t('job.paused_at'), <Instant at={job.paused_at} />] as [string, preact.ComponentChild]] : []),
              ]}
            />
          </div>
        </Card>
        {failed.length > 0 && (
          <Card title={t('job.errors')}>
            <ul class="run-lines">
              {failed.map((run) => (
                <RunLine key={run.id} run={run} isOwn />
              ))}
            </ul>
          </Card>
        )}
      </div>
      <div class="stack">
        <NextFires job={job} />
        <Card title={t('job.what')}>
          <div class="body">
            <Facts rows={facts(job)} />
          </div>
        </Card>
      </div>
    </div>
  );
}

function LastRun({ run }: { run: Run }) {
  return (
    <a href={href(`/runs/${run.id}`)} class="line">
      <StateBadge state={run.state} /> <Instant at={run.ended_at ?? run.due_at} short />
    </a>
  );
}

function NextFires({ job }: { job: Job }) {
  const schedule = job.schedule && scheduleOf(job.schedule);
  const preview = useResource<Preview>(
    // An interval counts from where it began, so that is where the preview begins to count, too.
    schedule ? () => api.post('schedules/preview', { schedule: anchored(job), count: 10 }) : null,
    [job.version, job.next_slot_at],
  );
  return (
    <Card title={t('job.next_fires')}>
      <div class="body stack">
        {!schedule ? (
          <p class="muted">{t('preview.none')}</p>
        ) : !preview.data ? (
          <Pending {...preview} />
        ) : (
          <>
            {!job.enabled && (
              <p class="lint">
                <Icon name="pause" size={14} /> {t('job.fires_paused')}
              </p>
            )}
            {preview.data.lints.map((lint) => (
              <p key={lint.code + lint.message.en} class="lint">
                <Icon name="warn" size={14} /> {said(lint.message)}
              </p>
            ))}
            <Fires fires={preview.data.fires} zone={zoneOf(job.schedule)} />
          </>
        )}
      </div>
    </Card>
  );
}

/** The job's schedule as a preview needs it to land on the same instants. */
function anchored(job: Job): unknown {
  const schedule = scheduleOf(job.schedule!);
  if (schedule.kind !== 'every' || schedule.start_at) return schedule;
  return { ...schedule, start_at: job.next_slot_at ?? undefined };
}

function facts(job: Job): [string, preact.ComponentChild][] {
  const { config, kind } = job.target;
  return [
    [t('jobs.kind'), word('kind', kind)],
    ...(kind === 'http' ? [[t('form.url'), <code>{`${String(config.method)} ${String(config.url)}`}</code>] as [string, preact.ComponentChild]] : []),
    [t('form.retry'), tn('job.attempts', job.retry.max_attempts, { rest: `${word('strategy', job.retry.strategy)}, ${job.retry.initial_delay}` })],
    [t('form.total'), job.timeouts.total],
    [t('form.overlap'), word('overlap', job.overlap.rule)],
    [t('form.misfire'), word('misfire', job.misfire.rule)],
    [t('form.queue'), job.queue],
    [t('form.priority'), word('priority', job.priority)],
    [t('jobs.surface'), word('surface', job.surface)],
    [t('job.version'), String(job.version)],
  ];
}
