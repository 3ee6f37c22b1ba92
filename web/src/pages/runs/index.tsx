/** Runs of all jobs: find some, see when they were, act on many. */
import { useState } from 'preact/hooks';
import { api, readOnly } from '../../lib/api';
import { number, t, tn, word } from '../../lib/i18n';
import { useKey } from '../../lib/keys';
import { useResource } from '../../lib/resource';
import { href, setQuery } from '../../lib/router';
import { delayOf, reasonOf, runHref, runName } from '../../lib/run_links';
import { span } from '../../lib/time';
import type { Run } from '../../lib/types';
import { OperationBar, useOperation } from '../../ui/bulk';
import { Button, Card, PageHead } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Instant } from '../../ui/instant';
import { firstLine } from '../../ui/run_line';
import { StateBadge } from '../../ui/state';
import { pageParams, Paging, sortParam, Table, type Column } from '../../ui/table';
import { RunsBulk } from './bulk';
import { ANY, filterOfUrl, rangeOfUrl, RANGES, stretchOfUrl } from './filter';
import { Filters } from './filters';
import { Histogram } from './histogram';
import { useSteadyRuns } from './steady';
import type { HistogramView } from './types';

export function RunsPage() {
  const filter = filterOfUrl();
  const range = rangeOfUrl();
  const bounds = range ? { range } : stretchOfUrl();
  const listed = { ...filter, sort: sortParam(), ...pageParams() };
  const runs = useSteadyRuns(() => ({ ...listed, ...stretchOfUrl() }), JSON.stringify([listed, bounds]));
  const [selected, setSelected] = useState<Set<number | string>>(new Set());
  const clear = (): void => setSelected(new Set());
  const operation = useOperation(() => {
    clear();
    runs.refresh();
  });
  useKey('.', 'key.show_new', runs.accept, runs.waiting > 0);
  return (
    <>
      <PageHead title={t('nav.runs')} />
      <Card>
        <Filters filter={filter} range={range} />
        <Chart bounds={bounds} />
        <RunsBulk selected={selected} clear={clear} begin={operation.begin} total={runs.page?.total ?? 0} />
        <OperationBar {...operation} />
        {runs.waiting > 0 && (
          <div class="new-rows" role="status">
            <Button text={tn('runs.new', runs.waiting)} icon="up" onClick={runs.accept} />
          </div>
        )}
        <Table
          label={t('nav.runs')}
          columns={columns()}
          rows={runs.page?.items}
          rowKey={(run) => run.id}
          href={runHref}
          selected={selected}
          onSelect={readOnly.value ? undefined : setSelected}
          error={runs.error}
          isLoading={runs.isLoading}
          refresh={runs.refresh}
          empty={<NoRuns isFiltered={Object.keys(filter).length > 0} isBounded={range !== ANY} />}
        />
        {runs.page && runs.page.total > 0 && <Paging {...runs.page} />}
      </Card>
    </>
  );
}

const DAYS_OF_ALL = 30;

function Chart({ bounds }: { bounds: { range?: string; since?: string; until?: string } }) {
  const filter = filterOfUrl();
  const view = useResource<HistogramView>(
    (abort) => {
      const stretch = bounds.range === ANY ? { since: new Date(Date.now() - RANGES[`${DAYS_OF_ALL}d`]!).toISOString() } : stretchOfUrl();
      return api.get('runs/histogram', { ...filter, ...stretch, buckets: 80 }, abort);
    },
    [filter, bounds],
    { live: ['run'], pace: 5000 },
  );
  if (!view.data?.bars.length) return null;
  return <Histogram view={view.data} onPick={(since, until) => setQuery({ since, until, range: null }, { replace: false })} />;
}

function NoRuns({ isFiltered, isBounded }: { isFiltered: boolean; isBounded: boolean }) {
  if (!isFiltered && !isBounded) return <Empty title={t('runs.none')} text={t('runs.none_text')} />;
  return (
    <Empty title={t(isFiltered ? 'runs.none_found' : 'runs.none_then')}>
      <a href={href('/runs', { range: ANY })}>{t('runs.clear_filter')}</a>
    </Empty>
  );
}

function columns(): Column<Run>[] {
  return [
    { key: 'state', title: t('runs.state'), show: (run) => <StateBadge state={run.state} reason={reasonOf(run)} /> },
    {
      key: 'job',
      title: t('runs.job'),
      show: (run) =>
        run.job_id ? (
          <a class="strong" href={href(`/jobs/${run.job_id}`)}>
            {runName(run)}
          </a>
        ) : (
          <span class="strong">{runName(run)}</span>
        ),
    },
    { key: 'planned', title: t('runs.planned'), show: (run) => <Instant at={run.planned_at} short /> },
    { key: 'delay', title: t('runs.delay'), align: 'right', minor: true, show: (run) => <span class="nowrap">{span(delayOf(run))}</span> },
    { key: 'took', title: t('runs.took'), align: 'right', show: (run) => <span class="nowrap">{span(run.duration_ms)}</span> },
    { key: 'attempts', title: t('runs.attempts'), align: 'right', minor: true, show: (run) => number(run.attempt) },
    { key: 'trigger', title: t('runs.trigger'), minor: true, show: (run) => <span class="nowrap">{word('trigger', run.trigger)}</span> },
    {
      key: 'error',
      title: t('runs.run'),
      show: (run) =>
        run.error ? (
          <a class="clip" href={runHref(run)} title={run.error}>
            {firstLine(run.error)}
          </a>
        ) : (
          <a class="muted" href={runHref(run)}>
            {t('run.title', { id: run.id })}
          </a>
        ),
    },
  ];
}
