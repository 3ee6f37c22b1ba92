/** What to do while there is nothing yet. */
import { hasKey, readOnly } from '../lib/api';
import { t } from '../lib/i18n';
import { href, root } from '../lib/router';
import { Code } from '../ui/code';
import { Button, Card } from '../ui/controls';

const curl = (): string => `curl -X POST ${location.origin}${root}api/v2/jobs \\
  -H 'Content-Type: application/json' \\
${hasKey() ? `  -H "Authorization: Bearer $KSANA_TOKEN" \\\n` : ''}  -d '{"name": "heartbeat", "target": {"kind": "noop"}, "schedule": {"kind": "every", "every": "5s"}}'`;

export function FirstSteps() {
  return (
    <Card title={t('first.title')}>
      <div class="body stack">
        <p>{t('first.text')}</p>
        <ol class="steps">
          <li>
            <strong>{t('first.create')}</strong>
            {!readOnly.value && (
              <div class="line">
                <Button text={t('act.new_job')} icon="plus" kind="primary" href={href('/jobs/new')} />
                <span class="muted">{t('first.or')}</span>
              </div>
            )}
            <Code text={curl()} label="curl" />
          </li>
          <li>
            <strong>{t('first.watch')}</strong>
            <span class="muted">{t('first.watch_text')}</span>
          </li>
          <li>
            <strong>{t('first.break')}</strong>
            <span class="muted">{t('first.break_text')}</span>
          </li>
          <li>
            <strong>{t('first.keys')}</strong>
            <span class="muted">{t('first.keys_text')}</span>
          </li>
        </ol>
      </div>
    </Card>
  );
}
