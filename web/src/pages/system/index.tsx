/** The system: whether it is well, what it stands on, how it is set, and who changed what. */
import { t } from '../../lib/i18n';
import { param, setQuery } from '../../lib/router';
import { PageHead, Tabs } from '../../ui/controls';
import { Alerts } from './alerts';
import { Audit } from './audit';
import { Health } from './health';
import { Operations } from './operations';
import { Settings } from './settings';

const VIEWS = { health: Health, settings: Settings, audit: Audit, operations: Operations, alerts: Alerts } as const;
type View = keyof typeof VIEWS;
const NAMES = Object.keys(VIEWS) as View[];

export function SystemPage() {
  const view = NAMES.find((name) => name === param('show')) ?? 'health';
  const Shown = VIEWS[view];
  return (
    <>
      <PageHead title={t('nav.system')} />
      <Tabs
        label={t('nav.system')}
        value={view}
        tabs={NAMES.map((key) => ({ key, text: t(`sys.${key}`) }))}
        onChange={(key) => setQuery({ show: key === 'health' ? null : key, subject: null, actor: null, state: null, name: null })}
      />
      <div class="stack" role="tabpanel" aria-label={t(`sys.${view}`)}>
        <Shown />
      </div>
    </>
  );
}
