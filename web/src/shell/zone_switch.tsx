/** In which zone every instant of the console is shown. */
import { useState } from 'preact/hooks';
import { t } from '../lib/i18n';
import { zone } from '../lib/settings';
import { browserZone, zones } from '../lib/time';
import { Select, TextField, Button } from '../ui/controls';
import { Dialog } from '../ui/feedback';

const OTHER = '…';

export function ZoneSwitch() {
  const [isChoosing, setChoosing] = useState(false);
  const current = zone.value;
  const isNamed = !['browser', 'utc', 'job'].includes(current);
  return (
    <>
      <Select
        label={t('zone.label')}
        bare
        value={current}
        options={[
          { value: 'browser', text: t('zone.browser', { zone: browserZone }) },
          { value: 'utc', text: 'UTC' },
          { value: 'job', text: t('zone.job') },
          ...(isNamed ? [{ value: current, text: current }] : []),
          { value: OTHER, text: t('zone.another') },
        ]}
        onChange={(value) => (value === OTHER ? setChoosing(true) : (zone.value = value))}
      />
      {isChoosing && <ZoneDialog onClose={() => setChoosing(false)} />}
    </>
  );
}

function ZoneDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const all = zones();
  const found = all.filter((name) => name.toLowerCase().includes(text.toLowerCase().replace(/ /g, '_')));
  const choose = (name: string): void => {
    zone.value = name;
    onClose();
  };
  return (
    <Dialog title={t('zone.choose')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (found[0]) choose(found[0]);
        }}
      >
        <div class="dialog-body">
          <TextField label={t('zone.name')} value={text} onInput={setText} placeholder="Asia/Shanghai" />
          <ul class="choices">
            {found.slice(0, 60).map((name) => (
              <li key={name}>
                <Button text={name} quiet onClick={() => choose(name)} />
              </li>
            ))}
          </ul>
        </div>
      </form>
    </Dialog>
  );
}
