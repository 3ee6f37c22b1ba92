/** The home page: what needs somebody, what comes next, what ran, what will run. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { HeatMap } from '../charts/heat_map';
import { Timeline } from '../charts/timeline';
import { api } from '../lib/api';
import { number, t, tn, word } from '../lib/i18n';
import { useResource } from '../lib/resource';
import { href, param, setQuery } from '../lib/router';
import { BAD, familyOf } from '../lib/states';
import { nowMs, slowNow, span, zoneFor } from '../lib/time';
import type { Attention, Heatmap, Overview, TimelineView } from '../lib/types';
import { Act } from '../ui/act';
import { Button, Card, PageHead, Segments, Select } from '../ui/controls';
import { Empty, Pending } from '../ui/feedback';
import { Icon } from '../ui/icon';
import { Distance, Instant } from '../ui/instant';
import { RunLine } from '../ui/run_line';
import { StateMark } from '../ui/state';
import { FirstSteps } from './first_steps';

export function OverviewPage() {
  const overview = useResource<Overview>((abort) => api.get('overview', {}, abort), [], {
    live: ['run', 'job', 'queue'],
    pace: 3000,
  });
  const { data } = overview;
  return (
    <>
      <PageHead title={t('nav.overview')} side={<Act text={t('act.new_job')} icon="plus" href={href('/jobs/new')} />} />
      {!data ? (
        <Pending {...overview} />
      ) : data.is_empty ? (
        <FirstSteps />
      ) : (
        <>
          <AttentionStrip items={data.attention} />
          <Tiles overview={data} />
          <TimelineCard />
          <div class="columns">
            <HeatCard />
            <Failures overview={data} />
          </div>
        </>
      )}
    </>
  );
}

const ACKED = 'ksana.acked';
const acked = signal<Record<string, string>>(readAcked());

function readAcked(): Record<string, string> {
  try {
    return JSON.parse(localStorage.getItem(ACKED) ?? '{}') as Record<string, string>;
  } catch {
    return {};
  }
}

/** Put what is known of away; it comes back with the next of its kind. */
function acknowledge(items: Attention[]): void {
  acked.value = { ...acked.peek(), ...Object.fromEntries(items.map((item) => [item.kind, `${item.at} ${item.count}`])) };
  try {
    localStorage.setItem(ACKED, JSON.stringify(acked.peek()));
  } catch {
    // Without storage it lasts as long as the page.
  }
}

const places: Record<Attention['kind'], () => string> = {
  failed: () => href('/runs?state=FAILED&state=TIMEOUT'),
  dead_letter: () => href('/queues', { show: 'dead' }),
  missed: () => href('/runs?state=MISSED'),
  late_callback: () => href('/runs?state=TIMEOUT'),
};

function AttentionStrip({ items }: { items: Attention[] }) {
  const open = items.filter((item) => acked.value[item.kind] !== `${item.at} ${item.count}`);
  if (!open.length) return null;
  return (
    <section class="attention" aria-label={t('attention.label')}>
      <Icon name="warn" />
      <ul>
        {open.map((item) => (
          <li key={item.kind}>
            <a class="strong" href={places[item.kind]()}>
              {tn(`attention.${item.kind}`, item.count)}
            </a>{' '}
            {item.run_id && (
              <a href={href(`/runs/${item.run_id}`)} title={item.text}>
                {t('attention.newest')}
              </a>
            )}{' '}
            {item.at && <Instant at={item.at} short />}
          </li>
        ))}
      </ul>
      <Button text={t('attention.ack')} quiet onClick={() => acknowledge(open)} />
    </section>
  );
}

function Tile({ title, to, children, note }: { title: string; to: string; children: ComponentChildren; note?: string }) {
  return (
    <a class="tile" href={to}>
      <span class="tile-title">{title}</span>
      <span class="tile-value">{children}</span>
      {note && <span class="tile-note">{note}</span>}
    </a>
  );
}

function Tiles({ overview }: { overview: Overview }) {
  const { next, running, day, start_delay: delay, callbacks, queues, jobs } = overview;
  const first = next[0];
  const dayLink = href('/runs', { since: new Date(slowNow.value - 86_400_000).toISOString().slice(0, 19) + 'Z' });
  return (
    <div class="tiles">
      <Tile title={t('tile.next')} to={first ? href(`/jobs/${first.job_id}`) : href('/jobs')} note={first ? first.name : tn('tile.jobs', jobs.total)}>
        {first ? <Distance ms={Date.parse(first.at)} /> : '–'}
      </Tile>
      <Tile title={t('tile.running')} to={href('/runs?state=RUNNING')} note={t('tile.capacity', { n: number(running.capacity) })}>
        {number(running.here)}
      </Tile>
      <Tile title={t('tile.day')} to={dayLink} note={t('tile.day_note')}>
        <DayCounts day={day} />
      </Tile>
      <Tile title={t('tile.delay')} to={href('/runs')} note={t('tile.delay_note', { p50: span(delay.p50_ms), n: number(delay.samples) })}>
        {span(delay.p95_ms)}
      </Tile>
      <Tile title={t('tile.callbacks')} to={href('/runs?state=CALLBACK_PENDING')} note={tn('tile.late', callbacks.late)}>
        {number(callbacks.waiting)}
      </Tile>
      <Tile title={t('tile.queue')} to={href('/queues')} note={t('tile.queue_note', { lag: span(queues.lag_seconds * 1000), dead: number(queues.dead_letters) })}>
        {number(queues.due)}
      </Tile>
    </div>
  );
}

const FOLDED = ['ok', 'bad', 'retry', 'off'] as const;
const shownState = { ok: 'SUCCESS', bad: 'FAILED', retry: 'RETRYING', off: 'SKIPPED' } as const;

/** The day by families, so that thirteen states fit a tile. */
function DayCounts({ day }: { day: Record<string, number> }) {
  const counts = new Map<string, number>();
  for (const [state, count] of Object.entries(day)) counts.set(familyOf(state), (counts.get(familyOf(state)) ?? 0) + count);
  return (
    <span class="day-counts">
      {FOLDED.map((family) => (
        <span key={family}>
          <StateMark state={shownState[family]} title={word('family', family)} /> {number(counts.get(family) ?? 0)}
        </span>
      ))}
    </span>
  );
}

const RANGES: Record<string, number> = { '15m': 900_000, '1h': 3_600_000, '6h': 21_600_000, '24h': 86_400_000, '7d': 604_800_000 };

function TimelineCard() {
  const range = RANGES[param('range')] ? param('range') : '1h';
  const group = ['tag', 'kind'].includes(param('group')) ? param('group') : 'job';
  const name = param('name');
  const size = RANGES[range]!;
  // The picture moves on by itself: by a hundredth of its width, but not more often than every ten seconds.
  const step = Math.floor(slowNow.value / Math.max(10_000, size / 100));
  const view = useResource<TimelineView>(
    (abort) => {
      const at = nowMs();
      const instant = (ms: number): string => new Date(ms).toISOString();
      return api.get('timeline', { since: instant(at - size), until: instant(at + size / 4), group, name, limit: param('lanes', '12') }, abort);
    },
    [range, group, name, step, param('lanes')],
    { live: ['run', 'job'], pace: Math.min(10_000, Math.max(2000, size / 1000)) },
  );
  const side = (
    <>
      <Segments label={t('timeline.range')} value={range} options={Object.keys(RANGES).map((value) => ({ value, text: value }))} onChange={(value) => setQuery({ range: value })} />
      <Select
        label={t('timeline.group')}
        bare
        value={group}
        options={[
          { value: 'job', text: t('timeline.by_job') },
          { value: 'tag', text: t('timeline.by_tag') },
          { value: 'kind', text: t('timeline.by_kind') },
        ]}
        onChange={(value) => setQuery({ group: value })}
      />
      <input class="timeline-filter" type="search" aria-label={t('jobs.search')} placeholder={t('timeline.filter')} value={name} onInput={(event) => setQuery({ name: event.currentTarget.value })} />
    </>
  );
  return (
    <Card title={t('timeline.title')} side={side}>
      {!view.data ? (
        <Pending {...view} />
      ) : view.data.lanes.length ? (
        <Timeline view={view.data} group={group} />
      ) : (
        <Empty title={t('timeline.none')} />
      )}
      {view.data && view.data.more > 0 && (
        <div class="more-lanes">
          <Button text={tn('timeline.more', view.data.more)} quiet onClick={() => setQuery({ lanes: '50' })} />
        </div>
      )}
    </Card>
  );
}

function HeatCard() {
  const zone = zoneFor();
  const heat = useResource<Heatmap>((abort) => api.get('heatmap', { days: 7, timezone: zone }, abort), [zone], { live: ['run'], pace: 30_000 });
  return (
    <Card title={t('heat.title')} side={<span class="muted small">{zone}</span>}>
      <div class="body">{heat.data ? <HeatMap view={heat.data} /> : <Pending {...heat} />}</div>
    </Card>
  );
}

function Failures({ overview }: { overview: Overview }) {
  const { failures } = overview;
  const all = href(`/runs?${BAD.map((state) => `state=${state}`).join('&')}`);
  return (
    <Card title={t('failures.title')} side={<a href={all}>{t('failures.all')}</a>}>
      {failures.length ? (
        <ul class="run-lines">
          {failures.map((run) => (
            <RunLine key={run.id} run={run} />
          ))}
        </ul>
      ) : (
        <Empty title={t('failures.none')} />
      )}
    </Card>
  );
}
