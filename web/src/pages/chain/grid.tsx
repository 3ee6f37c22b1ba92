/** The last runs of a chain against its nodes: what fails now and then, and since when. */
import { api } from '../../lib/api';
import { t, tn, word } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { href } from '../../lib/router';
import { wall, zoneFor } from '../../lib/time';
import { Empty, Pending } from '../../ui/feedback';
import { StateMark } from '../../ui/state';
import type { Grid } from './types';

const MOST = 200;

export function RunGrid({ job, run }: { job: number; run?: number }) {
  const grid = useResource<Grid>((abort) => api.get(`jobs/${job}/grid`, { runs: 25 }, abort), [job], {
    live: ['run'],
    wants: (event) => event.patch?.job_id === job,
    pace: 2000,
  });
  if (!grid.data) return <Pending {...grid} />;
  const { nodes } = grid.data;
  // The newest stands at the right, where one reads on.
  const runs = [...grid.data.runs].reverse();
  if (!runs.length) return <Empty title={t('chain.no_runs')} text={t('chain.no_runs_text')} />;
  return (
    <div class="table-frame">
      <table class="run-grid">
        <caption class="visually-hidden">{t('chain.grid_label')}</caption>
        <thead>
          <tr>
            <th scope="col">{t('chain.node')}</th>
            {runs.map((each) => (
              <th key={each.run_id} scope="col" class={each.run_id === run ? 'here' : undefined}>
                <a href={href(`/chains/${job}/runs/${each.run_id}`)} title={told(each)} aria-label={told(each)}>
                  <StateMark state={each.state} title={told(each)} />
                </a>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.slice(0, MOST).map((node, place) => (
            <tr key={node}>
              <th scope="row">{node}</th>
              {runs.map((each) => {
                const state = each.states[place];
                return (
                  <td key={each.run_id} class={each.run_id === run ? 'here' : undefined}>
                    {state ? (
                      <a href={href(`/chains/${job}/runs/${each.run_id}`, { node })} tabIndex={-1}>
                        <StateMark state={state} title={`${node} · ${t('run.title', { id: each.run_id })}: ${word('state', state)}`} />
                      </a>
                    ) : (
                      <span class="muted">·</span>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {nodes.length > MOST && <p class="body muted">{tn('chain.more_steps', nodes.length - MOST)}</p>}
    </div>
  );
}

function told(run: Grid['runs'][number]): string {
  const named = `${t('run.title', { id: run.run_id })}: ${word('state', run.state)}`;
  if (!run.started_at) return named;
  const { date, time, offset } = wall(Date.parse(run.started_at), zoneFor());
  return `${named} · ${date} ${time} ${offset}`;
}
