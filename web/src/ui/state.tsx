/** A state as colour, icon and word; never by colour alone. */
import { word } from '../lib/i18n';
import { familyOf } from '../lib/states';
import { Icon } from './icon';

export function StateBadge({ state, reason }: { state: string; reason?: string | null }) {
  return (
    <span class={`state ${familyOf(state)}`}>
      <Icon name={familyOf(state)} size={14} />
      <span>{word('state', state)}</span>
      {reason && <span class="muted">{word('reason', reason)}</span>}
    </span>
  );
}

/** The mark alone, for dense places; its word is in the name a screen reader says and a pointer shows. */
export function StateMark({ state, title }: { state: string; title?: string }) {
  const text = title ?? word('state', state);
  return (
    <span class={`mark ${familyOf(state)}`} role="img" aria-label={text} title={text}>
      <Icon name={familyOf(state)} size={12} />
    </span>
  );
}
