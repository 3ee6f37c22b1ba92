/** All jobs, whichever way they were made: find them, see how they fare, act on many. */
import { useRef, useState } from 'preact/hooks';
import { Dots } from '../charts/dots';
import { api, readOnly } from '../lib/api';
import { draftOf, type Draft } from '../lib/definition';
import { ask, attempt } from '../lib/feedback';
import { t, tn, word } from '../lib/i18n';
import { duplicate, given, pause, remove, resume, runNow } from '../lib/job_actions';
import { useKey } from '../lib/keys';
import { useResource, useRested } from '../lib/resource';
import { href, navigate, param, setQuery } from '../lib/router';
import { span } from '../lib/time';
import type { Job, Outcomes, Page } from '../lib/types';
import { Act } from '../ui/act';
import { OperationBar, useOperation, type OperationInput } from '../ui/bulk';
import { Button, Card, Menu, PageHead, Select, TextField } from '../ui/controls';
import { Dialog, Empty } from '../ui/feedback';
import { Instant } from '../ui/instant';
import { Paused } from '../ui/paused';
import { ScheduleText, zoneOf } from '../ui/schedule';
import { StateBadge } from '../ui/state';
import { pageParams, Paging, sortParam, Table, type Column } from '../ui/table';

const FILTERS = ['name', 'kind', 'tag', 'surface', 'enabled'] as const;

export function JobsPage() {
  const filter = Object.fromEntries(FILTERS.map((name) => [name, param(name)]).filter(([, value]) => value));
  const query = useRested({ ...filter, sort: sortParam(), ...pageParams() }, 150);
  const jobs = useResource<Page<Job>>((abort) => api.get('jobs', query, abort), [query], { live: ['job', 'run'], pace: 3000 });
  const ids = jobs.data?.items.map((job) => job.id) ?? [];
  const outcomes = useOutcomes(ids);
  const [selected, setSelected] = useState<Set<number | string>>(new Set());
  const refresh = (): void => {
    setSelected(new Set());
    jobs.refresh();
  };
  const operation = useOperation(refresh);
  useKey('n', 'key.new_job', () => navigate(href('/jobs/new')), !readOnly.value);
  return (
    <>
      <PageHead
        title={t('nav.jobs')}
        side={
          <>
            <Button text={t('act.export')} title={t('jobs.export_hint')} onClick={() => void attempt(() => exportJobs(filter))} />
            <Act text={t('act.new_job')} icon="plus" kind="primary" href={href('/jobs/new')} />
          </>
        }
      />
      <Card>
        <Filters />
        <BulkBar selected={selected} clear={() => setSelected(new Set())} begin={operation.begin} filter={filter} total={jobs.data?.total ?? 0} />
        <OperationBar {...operation} />
        <Table
          label={t('nav.jobs')}
          columns={columns(outcomes, jobs.refresh)}
          rows={jobs.data?.items}
          rowKey={(job) => job.id}
          href={(job) => href(`/jobs/${job.id}`)}
          selected={selected}
          onSelect={readOnly.value ? undefined : setSelected}
          error={jobs.error}
          isLoading={jobs.isLoading}
          refresh={jobs.refresh}
          empty={<NoJobs isFiltered={Object.keys(filter).length > 0} />}
        />
        {jobs.data && jobs.data.total > 0 && <Paging {...jobs.data} />}
      </Card>
    </>
  );
}

/** Every job that matches, as a file that `ksana jobs apply -f` takes. */
async function exportJobs(filter: Record<string, string>): Promise<void> {
  const found: Draft[] = [];
  for (let page = 1, total = 1; found.length < total; page++) {
    const part = await api.get<Page<Job>>('jobs', { ...filter, sort: 'id', page, page_size: 200 });
    if (!part.items.length) break;
    found.push(...part.items.map((job) => ({ ...draftOf(job), enabled: job.enabled })));
    total = part.total;
  }
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([`${JSON.stringify(found, null, 2)}\n`], { type: 'application/json' }));
  link.download = 'ksana-jobs.json';
  link.click();
  URL.revokeObjectURL(link.href);
}

/** How the last runs of these jobs ended; fetched apart, so that the list need not wait for it. */
function useOutcomes(ids: number[]): Map<number, Outcomes> {
  const found = useResource<{ items: Outcomes[] }>(
    ids.length ? (abort) => api.get('jobs/outcomes', { ids: ids.join() }, abort) : null,
    [ids],
    { live: ['run'], pace: 10_000 },
  );
  return new Map((found.data?.items ?? []).map((each) => [each.job_id, each]));
}

function columns(outcomes: Map<number, Outcomes>, refresh: () => void): Column<Job>[] {
  return [
    {
      key: 'name',
      title: t('jobs.name'),
      sort: 'name',
      show: (job) => (
        <>
          <a class="strong" href={href(`/jobs/${job.id}`)}>
            {job.name}
          </a>{' '}
          <Paused job={job} />
          {job.tags.length > 0 && (
            <div class="chips">
              {job.tags.map((tag) => (
                <a key={tag} class="chip" href={href('/jobs', { tag })}>
                  {tag}
                </a>
              ))}
            </div>
          )}
        </>
      ),
    },
    { key: 'kind', title: t('jobs.kind'), minor: true, show: (job) => word('kind', job.target.kind) },
    { key: 'schedule', title: t('jobs.schedule'), show: (job) => <ScheduleText job={job} /> },
    {
      key: 'next',
      title: t('jobs.next'),
      sort: 'next_fire_at',
      show: (job) => <Instant at={job.next_fire_at} zone={zoneOf(job.schedule)} short />,
    },
    {
      key: 'last',
      title: t('jobs.last'),
      minor: true,
      show: (job) => job.last_run && <StateBadge state={job.last_run.state} />,
    },
    {
      key: 'outcomes',
      title: t('jobs.outcomes'),
      minor: true,
      show: (job) => <Dots outcomes={outcomes.get(job.id)?.last ?? []} />,
    },
    { key: 'p95', title: 'p95', align: 'right', minor: true, show: (job) => <span class="nowrap">{span(outcomes.get(job.id)?.p95_ms)}</span> },
    {
      key: 'acts',
      title: t('jobs.actions'),
      isQuiet: true,
      align: 'right',
      show: (job) => !readOnly.value && <RowMenu job={job} refresh={refresh} />,
    },
  ];
}

function RowMenu({ job, refresh }: { job: Job; refresh: () => void }) {
  const then = (done: Promise<boolean>): void => void done.then((isDone) => isDone && refresh());
  return (
    <Menu
      label={t('jobs.acts', { name: job.name })}
      items={[
        { text: t('act.run'), icon: 'play', onClick: () => then(runNow(job)) },
        job.enabled
          ? { text: t('act.pause'), icon: 'pause', onClick: () => then(pause(job)) }
          : { text: t('act.resume'), icon: 'play', onClick: () => then(resume(job)) },
        { text: t('act.duplicate'), icon: 'copy', onClick: () => duplicate(job) },
        { text: t('act.delete'), icon: 'trash', isDangerous: true, onClick: () => then(remove(job)) },
      ]}
    />
  );
}

function NoJobs({ isFiltered }: { isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title={t('jobs.none_found')}>
      <a href={href('/jobs')}>{t('jobs.clear_filter')}</a>
    </Empty>
  ) : (
    <Empty title={t('jobs.none')} text={t('jobs.none_text')}>
      <Act text={t('act.new_job')} icon="plus" kind="primary" href={href('/jobs/new')} />
    </Empty>
  );
}

function Filters() {
  const search = useRef<HTMLInputElement>(null);
  const targets = useResource<string[]>((abort) => api.get('targets', {}, abort), []);
  const isFiltered = FILTERS.some((name) => param(name));
  const tag = param('tag');
  const surface = param('surface');
  useKey('f', 'key.search', () => search.current?.focus());
  return (
    <div class="filters" role="search">
      <input
        ref={search}
        class="search"
        type="search"
        aria-label={t('jobs.search')}
        placeholder={t('jobs.search')}
        value={param('name')}
        onInput={(event) => setQuery({ name: event.currentTarget.value })}
      />
      <Select
        label={t('jobs.kind')}
        bare
        value={param('kind')}
        options={[
          { value: '', text: t('jobs.any_kind') },
          ...(targets.data ?? []).map((kind) => ({ value: kind, text: word('kind', kind) })),
        ]}
        onChange={(kind) => setQuery({ kind })}
      />
      <Select
        label={t('jobs.state')}
        bare
        value={param('enabled')}
        options={[
          { value: '', text: t('jobs.any_state') },
          { value: 'true', text: t('jobs.enabled') },
          { value: 'false', text: t('state.paused') },
        ]}
        onChange={(enabled) => setQuery({ enabled })}
      />
      <Select
        label={t('jobs.surface')}
        bare
        value={surface}
        options={[
          { value: '', text: t('jobs.any_surface') },
          ...['v2', 'jobs', 'tasks', 'chains', 'queue', 'code'].map((value) => ({ value, text: word('surface', value) })),
        ]}
        onChange={(value) => setQuery({ surface: value })}
      />
      {tag && (
        <Button text={t('jobs.tag', { tag })} icon="close" onClick={() => setQuery({ tag: null })} />
      )}
      {isFiltered && <Button text={t('act.reset')} quiet onClick={() => navigate(href('/jobs'))} />}
    </div>
  );
}

interface BulkProps {
  selected: Set<number | string>;
  clear: () => void;
  begin: (input: OperationInput) => Promise<boolean>;
  filter: Record<string, string>;
  total: number;
}

type BulkAction = 'run' | 'pause' | 'resume' | 'delete' | 'tag';

function BulkBar({ selected, clear, begin, filter, total }: BulkProps) {
  const [areAllMeant, setAllMeant] = useState(false);
  const [isTagging, setTagging] = useState(false);
  if (!selected.size) return null;
  const isAll = areAllMeant && total > selected.size;
  const count = isAll ? total : selected.size;
  const subject = isAll
    ? { filter: { ...filter, ...(filter.enabled ? { enabled: filter.enabled === 'true' } : {}) } }
    : { ids: [...selected].map(Number) };
  const act = async (action: BulkAction, more: Partial<OperationInput> = {}): Promise<void> => {
    const answer =
      action === 'tag'
        ? { reason: '', until: '' }
        : await ask({
            title: tn(`bulk.ask_${action}`, count),
            act: word('bulk.action', action),
            isDangerous: action === 'delete',
            wantsReason: action !== 'run',
            wantsUntil: action === 'pause',
            typed: action === 'delete' ? String(count) : undefined,
          });
    if (answer) await begin({ action, ...subject, ...given(answer), ...more });
  };
  return (
    <div class="bulk" role="region" aria-label={t('bulk.label')}>
      <strong>{isAll ? tn('bulk.all', total) : tn('bulk.selected', selected.size)}</strong>
      {total > selected.size && (
        <Button text={isAll ? t('bulk.only_selected') : tn('bulk.take_all', total)} quiet onClick={() => setAllMeant(!isAll)} />
      )}
      <span class="grow" />
      <Button text={t('act.run')} icon="play" onClick={() => void act('run')} />
      <Button text={t('act.pause')} icon="pause" onClick={() => void act('pause')} />
      <Button text={t('act.resume')} icon="play" onClick={() => void act('resume')} />
      <Button text={t('act.tag')} onClick={() => setTagging(true)} />
      <Button text={t('act.delete')} icon="trash" onClick={() => void act('delete')} />
      <Button icon="close" label={t('bulk.clear')} quiet onClick={clear} />
      {isTagging && (
        <TagDialog
          onClose={() => setTagging(false)}
          onDone={(tags, removed) => {
            setTagging(false);
            void act('tag', { tags, remove_tags: removed });
          }}
        />
      )}
    </div>
  );
}

export const words = (text: string): string[] => text.split(/[\s,，]+/).filter(Boolean);

function TagDialog({ onClose, onDone }: { onClose: () => void; onDone: (tags: string[], removed: string[]) => void }) {
  const [put, setPut] = useState('');
  const [taken, setTaken] = useState('');
  return (
    <Dialog title={t('act.tag')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onDone(words(put), words(taken));
        }}
      >
        <div class="dialog-body">
          <TextField label={t('bulk.put_tags')} hint={t('form.tags_hint')} value={put} onInput={setPut} />
          <TextField label={t('bulk.take_tags')} value={taken} onInput={setTaken} />
        </div>
        <footer>
          <Button text={t('act.cancel')} onClick={onClose} />
          <Button text={t('act.tag')} kind="primary" submit disabled={!words(put).length && !words(taken).length} />
        </footer>
      </form>
    </Dialog>
  );
}
