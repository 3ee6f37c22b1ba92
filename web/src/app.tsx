/** Which page a place shows, inside the shell. */
import { Component, type ComponentChildren, type VNode } from 'preact';
import { needsKey } from './lib/api';
import { t } from './lib/i18n';
import { href, match, place, type Match } from './lib/router';
import { ChainPage } from './pages/chain';
import { ChainsPage } from './pages/chains';
import { JobPage } from './pages/job';
import { JobsPage } from './pages/jobs';
import { NewJobPage } from './pages/new_job';
import { OverviewPage } from './pages/overview';
import { QueuesPage } from './pages/queues';
import { RunPage } from './pages/run';
import { RunsPage } from './pages/runs';
import { SystemPage } from './pages/system';
import { Login } from './shell/login';
import { Shell } from './shell/shell';
import { Empty, Failed } from './ui/feedback';

// The key makes another job another page, so that nothing of the last one is left over.
const routes: [string, (found: Match) => VNode][] = [
  ['/', () => <OverviewPage />],
  ['/jobs', () => <JobsPage />],
  ['/jobs/new', () => <NewJobPage />],
  ['/jobs/:id', ({ id = '' }) => <JobPage key={id} id={id} />],
  ['/runs', () => <RunsPage />],
  ['/runs/:id', ({ id = '' }) => <RunPage key={id} id={id} />],
  ['/chains', () => <ChainsPage />],
  ['/chains/:id', ({ id = '' }) => <ChainPage key={id} id={id} />],
  ['/chains/:id/runs/:rid', ({ id = '', rid = '' }) => <ChainPage key={`${id}/${rid}`} id={id} rid={rid} />],
  ['/queues', () => <QueuesPage />],
  ['/system', () => <SystemPage />],
];

export function App() {
  return (
    <Shell>
      {needsKey.value && <Login />}
      <Guarded key={place.value.path}>
        <Page />
      </Guarded>
    </Shell>
  );
}

/** A fault in one page must not take the others along. */
class Guarded extends Component<{ children: ComponentChildren }, { error?: unknown }> {
  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === undefined ? this.props.children : <Failed error={this.state.error} retry={() => location.reload()} />;
  }
}

function Page() {
  const { path } = place.value;
  for (const [pattern, show] of routes) {
    const found = match(pattern, path);
    if (found) return show(found);
  }
  return (
    <Empty title={t('missing.title')} text={t('missing.text')}>
      <a href={href('/')}>{t('nav.overview')}</a>
    </Empty>
  );
}
