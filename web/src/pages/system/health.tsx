/** Whether all is well: checks with what to do, this node, its store, the nodes beside it. */
import { api } from '../../lib/api';
import { ask, attempt } from '../../lib/feedback';
import { number, t, tn, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { span } from '../../lib/time';
import { Act } from '../../ui/act';
import { Card, Chip, Facts } from '../../ui/controls';
import { Failed, Pending } from '../../ui/feedback';
import { Icon } from '../../ui/icon';
import { Instant } from '../../ui/instant';
import { Table } from '../../ui/table';
import type { SystemView } from './types';

const ICONS = { ok: 'ok', warn: 'warn', bad: 'bad' } as const;
const WORST = ['bad', 'warn', 'ok'];

export function Health() {
  const system = useResource<SystemView>((abort) => api.get('system', {}, abort), [], { live: ['stats', 'job'], pace: 10_000 });
  const { data } = system;
  const turn = async (node: Node): Promise<void> => {
    const what = node.draining ? 'resume' : 'drain';
    const answer = node.draining || (await ask({ title: t('sys.ask_drain', { name: node.name }), body: t('sys.what_drain'), act: t('sys.drain') }));
    if (answer && (await attempt(() => api.post(`nodes/${node.id}/${what}`)))) system.refresh();
  };
  if (!data) return <Pending {...system} />;
  const checks = [...data.checks].sort((a, b) => WORST.indexOf(a.level) - WORST.indexOf(b.level));
  return (
    <>
      {system.error !== undefined && <Failed error={system.error} retry={system.refresh} />}
      <div class="columns">
        <Card title={t('sys.checks')}>
          <ul class="checks">
            {checks.map((check) => (
              <li key={check.name} class={check.level}>
                <Icon name={ICONS[check.level]} />
                <div>
                  <div>
                    <strong>{word('sys.level', check.level)}</strong> · {word('sys.check', check.name)}
                  </div>
                  <div class="muted">{textOf(check)}</div>
                  {check.fix && <div>{t('sys.fix', { fix: check.fix })}</div>}
                </div>
              </li>
            ))}
          </ul>
        </Card>
        <Card title={t('sys.node')}>
          <div class="body">
            <Facts rows={factsOf(data)} />
          </div>
        </Card>
      </div>
      <Card title={t('sys.nodes')}>
        <Table
          label={t('sys.nodes')}
          columns={[
            {
              key: 'name',
              title: t('jobs.name'),
              show: (node) => (
                <span class="line">
                  <strong>{node.name}</strong>
                  {node.id === data.node_id && <Chip text={t('sys.this_one')} />}
                </span>
              ),
            },
            { key: 'alive', title: t('runs.state'), show: (node) => <Standing node={node} /> },
            { key: 'started', title: t('sys.started'), show: (node) => <Instant at={node.started_at} short /> },
            {
              key: 'act',
              title: '',
              align: 'right',
              show: (node) =>
                node.is_alive && <Act text={t(node.draining ? 'act.resume' : 'sys.drain')} onClick={() => void turn(node)} />,
            },
            { key: 'lease', title: t('sys.lease'), minor: true, show: (node) => <Instant at={node.lease_until} short /> },
          ]}
          rows={data.nodes}
          rowKey={(node) => node.id}
          empty={<p class="body muted">{t('sys.no_nodes')}</p>}
        />
      </Card>
    </>
  );
}

type Node = SystemView['nodes'][number];

function Standing({ node }: { node: Node }) {
  if (!node.is_alive) return <Chip text={t('sys.silent')} tone="warn" />;
  if (!node.draining) return <Chip text={t('sys.alive')} tone="good" />;
  return <Chip text={node.held ? tn('sys.draining', node.held) : t('sys.drained')} tone="warn" />;
}

/** What is well is said in the language that is shown; trouble in the words of the server, which knows the figures. */
function textOf({ level, name, text }: SystemView['checks'][number]): string {
  const known = word('sys.well', name);
  return level === 'ok' && known !== name ? known : text;
}

const MIB = 1024 * 1024;

function factsOf(system: SystemView): [string, preact.ComponentChildren][] {
  const { store, retention } = system;
  const size = store.size_bytes === null ? '' : ` · ${number(Math.round((store.size_bytes / MIB) * 10) / 10)} MiB`;
  return [
    [t('sys.version'), system.version],
    [t('sys.started'), <Instant at={system.started_at} short />],
    [t('sys.uptime'), span(system.uptime_seconds * 1000)],
    [t('sys.store'), `${store.kind}${size}`],
    [
      t('sys.retention'),
      retention.keep === null ? t('sys.for_ever') : t('sys.kept', { keep: retention.keep, last: number(retention.keep_last) }),
    ],
    [t('sys.access'), t(system.auth ? 'sys.with_key' : system.exposed ? 'sys.open' : 'sys.loopback')],
  ];
}
