import { render } from 'preact';
import { App } from './app';
import { learnCaller } from './lib/api';
import { startWords } from './lib/i18n';
import { startLive } from './lib/live';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/parts.css';
import './styles/charts.css';
import './styles/overview.css';
import './styles/runs.css';
import './styles/run.css';
import './styles/chain.css';
import './styles/system.css';

await startWords();
startLive();
// The pages find out by themselves when nobody answers, or when a key is asked for.
learnCaller().catch(() => undefined);
render(<App />, document.getElementById('app')!);
