/** Buttons, fields, tabs, menus: what a page is put together from. */
import type { ComponentChildren, TargetedEvent } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from './icon';

export interface ButtonProps {
  text?: string;
  icon?: IconName;
  /** The name of a button that shows an icon only. */
  label?: string;
  kind?: 'plain' | 'primary' | 'danger';
  quiet?: boolean;
  disabled?: boolean;
  submit?: boolean;
  pressed?: boolean;
  href?: string;
  title?: string;
  onClick?: (event: MouseEvent) => void;
}

export function Button({ text, icon, label, kind = 'plain', quiet, disabled, submit, pressed, href, title, onClick }: ButtonProps) {
  const look = `button ${kind}${quiet ? ' quiet' : ''}${text ? '' : ' bare'}`;
  const inside = (
    <>
      {icon && <Icon name={icon} size={14} />}
      {text && <span>{text}</span>}
    </>
  );
  if (href) {
    return (
      <a class={look} href={href} aria-label={label} title={title ?? label}>
        {inside}
      </a>
    );
  }
  return (
    <button
      class={look}
      type={submit ? 'submit' : 'button'}
      aria-label={label}
      aria-pressed={pressed}
      title={title ?? label}
      disabled={disabled}
      onClick={onClick}
    >
      {inside}
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  error?: string;
  wide?: boolean;
  children: (id: { id: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ComponentChildren;
}

/** A labelled control with its hint and what is wrong with it. */
export function Field({ label, hint, error, wide, children }: FieldProps) {
  const id = useId();
  const about = error || hint ? `${id}-about` : undefined;
  return (
    <div class={wide ? 'field wide' : 'field'}>
      <label class="label" for={id}>
        {label}
      </label>
      {children({ id, 'aria-describedby': about, 'aria-invalid': error ? true : undefined })}
      {error ? (
        <div class="problem" id={about}>
          {error}
        </div>
      ) : (
        hint && (
          <div class="hint" id={about}>
            {hint}
          </div>
        )
      )}
    </div>
  );
}

interface TextProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  error?: string;
  placeholder?: string;
  type?: string;
  rows?: number;
  mono?: boolean;
  wide?: boolean;
  list?: string;
  required?: boolean;
}

export function TextField({ label, value, onInput, hint, error, rows, mono, wide, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error} wide={wide}>
      {(named) =>
        rows ? (
          <textarea
            {...named}
            rows={rows}
            class={mono ? 'mono' : undefined}
            spellcheck={!mono}
            value={value}
            placeholder={rest.placeholder}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        ) : (
          <input
            {...named}
            {...(rest as object)}
            class={mono ? 'mono' : undefined}
            spellcheck={false}
            autocomplete="off"
            value={value}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        )
      }
    </Field>
  );
}

export interface Option {
  value: string;
  text: string;
}

interface SelectProps {
  label: string;
  value: string;
  options: Option[];
  onChange: (value: string) => void;
  hint?: string;
  error?: string;
  /** Show the label to screen readers only. */
  bare?: boolean;
}

export function Select({ label, value, options, onChange, hint, error, bare }: SelectProps) {
  const choose = (event: TargetedEvent<HTMLSelectElement>): void => onChange(event.currentTarget.value);
  const choices = options.map((option) => (
    <option key={option.value} value={option.value} selected={option.value === value}>
      {option.text}
    </option>
  ));
  if (bare) {
    return (
      <select aria-label={label} title={label} value={value} onChange={choose}>
        {choices}
      </select>
    );
  }
  return (
    <Field label={label} hint={hint} error={error}>
      {(named) => (
        <select {...named} value={value} onChange={choose}>
          {choices}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, checked, onChange }: { label: string; checked: boolean; onChange: (on: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{label}</span>
    </label>
  );
}

/** A choice of few, side by side. */
export function Segments({ label, value, options, onChange }: { label: string; value: string; options: Option[]; onChange: (value: string) => void }) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" aria-pressed={option.value === value} onClick={() => onChange(option.value)}>
          {option.text}
        </button>
      ))}
    </div>
  );
}

export interface Tab {
  key: string;
  text: string;
  count?: number;
}

/** Tabs; the page shows what belongs to `value` below, in an element with role="tabpanel". */
export function Tabs({ label, value, tabs, onChange }: { label: string; value: string; tabs: Tab[]; onChange: (key: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.key === value);
    const next = (at + step + tabs.length) % tabs.length;
    onChange(tabs[next]!.key);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.key}
          type="button"
          role="tab"
          aria-selected={tab.key === value}
          tabIndex={tab.key === value ? 0 : -1}
          onClick={() => onChange(tab.key)}
        >
          {tab.text}
          {tab.count !== undefined && <span class="count">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

export interface MenuItem {
  text: string;
  icon?: IconName;
  isDangerous?: boolean;
  onClick: () => void;
}

/** A button that opens a list of actions. */
export function Menu({ label, text, icon = 'more', items }: { label: string; text?: string; icon?: IconName; items: MenuItem[] }) {
  const [isOpen, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    frame.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    const away = (event: Event): void => {
      if (!frame.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', away);
    return () => document.removeEventListener('pointerdown', away);
  }, [isOpen]);
  const steer = (event: KeyboardEvent): void => {
    const entries = [...(frame.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'Escape') {
      setOpen(false);
      frame.current?.querySelector('button')?.focus();
    } else if (event.key === 'ArrowDown') entries[(at + 1) % entries.length]?.focus();
    else if (event.key === 'ArrowUp') entries[(at - 1 + entries.length) % entries.length]?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={frame} onKeyDown={isOpen ? steer : undefined}>
      <button
        type="button"
        class={`button plain${text ? '' : ' quiet bare'}`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={text ? undefined : label}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        {text && <span>{text}</span>}
        <Icon name={text ? 'down' : icon} size={14} />
      </button>
      {isOpen && (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.text}
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={item.isDangerous ? 'danger' : undefined}
              onClick={() => {
                setOpen(false);
                item.onClick();
              }}
            >
              {item.icon && <Icon name={item.icon} size={14} />}
              {item.text}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

export function Chip({ text, tone = 'plain', title }: { text: string; tone?: 'plain' | 'warn' | 'bad' | 'good'; title?: string }) {
  return (
    <span class={`chip ${tone}`} title={title}>
      {text}
    </span>
  );
}

export function Card({ title, side, children, class: look }: { title?: string; side?: ComponentChildren; children: ComponentChildren; class?: string }) {
  const id = useId();
  return (
    <section class={`card ${look ?? ''}`} aria-labelledby={title ? id : undefined}>
      {title && (
        <header>
          <h2 id={id}>{title}</h2>
          {side && <div class="side">{side}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** Names and values, in two columns. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The head of a page: where we are, its name, its actions. Also the name of the browser tab. */
export function PageHead({ title, trail, side, children }: { title: string; trail?: { href: string; text: string }[]; side?: ComponentChildren; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Ksana`;
  }, [title]);
  return (
    <div class="page-head">
      <div class="page-title">
        {trail && (
          <nav class="trail" aria-label={title}>
            {trail.map((step) => (
              <a key={step.href} href={step.href}>
                {step.text}
              </a>
            ))}
          </nav>
        )}
        <h1>{title}</h1>
        {children}
      </div>
      {side && <div class="side">{side}</div>}
    </div>
  );
}
