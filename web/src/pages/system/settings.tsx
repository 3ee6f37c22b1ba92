/** Every setting, with where its value came from. */
import { api } from '../../lib/api';
import { t } from '../../lib/i18n';
import { useResource } from '../../lib/resource';
import { param, setQuery } from '../../lib/router';
import { Card, Check, Chip } from '../../ui/controls';
import { Empty } from '../../ui/feedback';
import { Table } from '../../ui/table';
import type { Setting } from './types';

export function Settings() {
  const settings = useResource<{ items: Setting[] }>((abort) => api.get('settings', {}, abort), []);
  const name = param('name').toLowerCase();
  const isSetOnly = param('set') === 'true';
  const rows = settings.data?.items.filter(
    (each) => (each.name + each.env.join() + each.description).toLowerCase().includes(name) && !(isSetOnly && each.source === 'default'),
  );
  return (
    <Card>
      <div class="filters" role="search">
        <input
          class="search"
          type="search"
          aria-label={t('sys.search_settings')}
          placeholder={t('sys.search_settings')}
          value={param('name')}
          onInput={(event) => setQuery({ name: event.currentTarget.value })}
        />
        <Check label={t('sys.set_only')} checked={isSetOnly} onChange={(isOn) => setQuery({ set: isOn ? 'true' : null })} />
      </div>
      <Table
        label={t('sys.settings')}
        columns={[
          {
            key: 'name',
            title: t('jobs.name'),
            show: (setting) => (
              <>
                <code class="strong">{setting.name}</code>
                <div class="sub">{setting.description}</div>
              </>
            ),
          },
          { key: 'value', title: t('sys.value'), show: (setting) => (setting.value ? <code>{setting.value}</code> : <span class="muted">–</span>) },
          {
            key: 'source',
            title: t('sys.source'),
            show: (setting) => <Chip text={setting.source === 'default' ? t('sys.default') : setting.source} tone={setting.source === 'default' ? 'plain' : 'good'} />,
          },
          { key: 'env', title: t('sys.env'), minor: true, show: (setting) => <code class="sub">{setting.env.join(' ')}</code> },
        ]}
        rows={rows}
        rowKey={(setting) => setting.name}
        error={settings.error}
        refresh={settings.refresh}
        isLoading={settings.isLoading}
        empty={<Empty title={t('sys.no_settings')} />}
      />
    </Card>
  );
}
