/** What narrows the list of runs: text, states, kind, range; all of it in the URL. */
import { useRef } from 'preact/hooks';
import { api } from '../../lib/api';
import { t, word } from '../../lib/i18n';
import { useKey } from '../../lib/keys';
import { useResource } from '../../lib/resource';
import { href, navigate, param, setQuery } from '../../lib/router';
import { familyOf, STATES, type Family } from '../../lib/states';
import type { Job } from '../../lib/types';
import { Button, Check, Segments, Select } from '../../ui/controls';
import { Icon } from '../../ui/icon';
import { Instant } from '../../ui/instant';
import { ANY, RANGES, type RunFilter } from './filter';

const FAMILIES: Family[] = ['bad', 'retry', 'run', 'outside', 'wait', 'ok', 'off'];

export function Filters({ filter, range }: { filter: RunFilter; range: string }) {
  const search = useRef<HTMLInputElement>(null);
  const targets = useResource<string[]>((abort) => api.get('targets', {}, abort), []);
  const kinds = [...new Set([...(targets.data ?? []), 'item', ...(filter.kind ? [filter.kind] : [])])];
  useKey('f', 'key.search', () => search.current?.focus());
  return (
    <div role="search">
      <div class="filters">
        <input
          ref={search}
          class="search"
          type="search"
          aria-label={t('runs.search')}
          placeholder={t('runs.search')}
          value={filter.name ?? ''}
          onInput={(event) => setQuery({ name: event.currentTarget.value })}
        />
        <input
          class="search"
          type="search"
          aria-label={t('runs.search_error')}
          placeholder={t('runs.search_error')}
          value={filter.error ?? ''}
          onInput={(event) => setQuery({ error: event.currentTarget.value })}
        />
        <input
          class="search short"
          type="search"
          aria-label={t('runs.tag')}
          placeholder={t('runs.tag')}
          value={filter.tag ?? ''}
          onInput={(event) => setQuery({ tag: event.currentTarget.value })}
        />
        <Select
          label={t('jobs.kind')}
          bare
          value={filter.kind ?? ''}
          options={[{ value: '', text: t('jobs.any_kind') }, ...kinds.map((kind) => ({ value: kind, text: word('kind', kind) }))]}
          onChange={(kind) => setQuery({ kind })}
        />
        <Check label={t('runs.children')} checked={filter.children ?? false} onChange={(isOn) => setQuery({ children: isOn ? 'true' : null })} />
        <span class="grow" />
        <Segments
          label={t('timeline.range')}
          value={range}
          options={[...Object.keys(RANGES).map((value) => ({ value, text: value })), { value: ANY, text: t('runs.any_time') }]}
          onChange={(value) => setQuery({ range: value, since: null, until: null })}
        />
      </div>
      <div class="filters">
        <StateFilter chosen={filter.state ?? []} />
        <Narrowed filter={filter} />
      </div>
    </div>
  );
}

/** Families of states to show; a link may also ask for some states of a family only. */
function StateFilter({ chosen }: { chosen: string[] }) {
  return (
    <div class="line family-filter" role="group" aria-label={t('runs.states')}>
      {FAMILIES.map((family) => {
        const all = STATES.filter((state) => familyOf(state) === family);
        const some = all.filter((state) => chosen.includes(state));
        const isPart = some.length > 0 && some.length < all.length;
        const others = chosen.filter((state) => familyOf(state) !== family);
        return (
          <button
            key={family}
            type="button"
            class={`button plain family ${family}`}
            aria-pressed={isPart ? 'mixed' : some.length > 0}
            onClick={() => setQuery({ state: some.length ? others : [...others, ...all] })}
          >
            <Icon name={family} size={14} />
            <span>{isPart ? some.map((state) => word('state', state)).join(', ') : word('family', family)}</span>
          </button>
        );
      })}
    </div>
  );
}

/** What links to this page ask for that has no control of its own; each can be taken away. */
function Narrowed({ filter }: { filter: RunFilter }) {
  const job = useResource<Job>(filter.job_id ? (abort) => api.get(`jobs/${filter.job_id}`, {}, abort) : null, [filter.job_id]);
  const since = param('since');
  const until = param('until');
  const isAny = Object.keys(filter).length > 0 || since || until || param('range');
  return (
    <>
      {filter.job_id && (
        <Button text={t('runs.of_job', { name: job.data?.name ?? filter.job_id })} icon="close" onClick={() => setQuery({ job_id: null })} />
      )}
      {filter.surface && <Button text={word('surface', filter.surface)} icon="close" onClick={() => setQuery({ surface: null })} />}
      {(since || until) && (
        <span class="line stretch">
          {since && <Instant at={since} short distance={false} />}
          <span class="muted">–</span>
          {until ? <Instant at={until} short distance={false} /> : <span class="muted">{t('time.now')}</span>}
          <Button icon="close" label={t('runs.clear_range')} quiet onClick={() => setQuery({ since: null, until: null })} />
        </span>
      )}
      {isAny && <Button text={t('act.reset')} quiet onClick={() => navigate(href('/runs'))} />}
    </>
  );
}
