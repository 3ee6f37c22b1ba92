/** The keys that do something on this page. */
import { t } from '../lib/i18n';
import { shortcuts } from '../lib/keys';
import { Dialog } from '../ui/feedback';

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const seen = new Map(shortcuts.value.map((each) => [each.keys, each.what]));
  return (
    <Dialog title={t('keys.title')} onClose={onClose}>
      <div class="dialog-body">
        <dl class="keys">
          <div>
            <dt>
              <kbd>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ K' : 'Ctrl K'}</kbd>
            </dt>
            <dd>{t('key.find')}</dd>
          </div>
          {[...seen].map(([keys, what]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{t(what)}</dd>
            </div>
          ))}
          <div>
            <dt>
              <kbd>Esc</kbd>
            </dt>
            <dd>{t('key.close')}</dd>
          </div>
        </dl>
      </div>
    </Dialog>
  );
}
