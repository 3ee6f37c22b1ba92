/** A table of things: sorting and paging in the URL, links, selection with shift, j/k/enter/x. */
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { number, t, tn } from '../lib/i18n';
import { useKey } from '../lib/keys';
import { navigate, param, setQuery } from '../lib/router';
import { Button, Select } from './controls';
import { Failed, Loading } from './feedback';
import { Icon } from './icon';

export interface Column<T> {
  key: string;
  title: string;
  /** Say the title to screen readers only. */
  isQuiet?: boolean;
  show: (row: T) => ComponentChildren;
  /** The field of the API's `sort`. */
  sort?: string;
  align?: 'right';
  /** Left out on narrow screens. */
  minor?: boolean;
  width?: string;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  rowKey: (row: T) => number | string;
  /** Where Enter and a click on the row lead. */
  href?: (row: T) => string;
  selected?: Set<number | string>;
  onSelect?: (keys: Set<number | string>) => void;
  error?: unknown;
  refresh?: () => void;
  isLoading?: boolean;
  empty: ComponentChildren;
  /** Off for a table beside the one that j, k and x are meant for. */
  hasKeys?: boolean;
}

/** The order in the URL: `name` or `-name`. */
export const sortParam = (fallback = ''): string => param('sort', fallback);

export function Table<T>({ label, columns, rows, rowKey, href, selected, onSelect, error, refresh, isLoading, empty, hasKeys = true }: Props<T>) {
  const [at, setAt] = useState(-1);
  const anchor = useRef(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  const count = rows?.length ?? 0;
  useLayoutEffect(() => setAt((old) => Math.min(old, count - 1)), [count]);

  // By steps, not to a row: held down, a key comes again before the last step is drawn.
  const step = (by: number): void => setAt((old) => Math.max(0, Math.min(count - 1, old + by)));
  useEffect(() => body.current?.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);
  useKey('j', 'key.next_row', () => step(1), hasKeys && count > 0);
  useKey('k', 'key.previous_row', () => step(-1), hasKeys && count > 0);
  useKey('Enter', 'key.open_row', () => rows?.[at] && href && navigate(href(rows[at])), at >= 0 && href !== undefined);
  useKey('x', 'key.select_row', () => at >= 0 && toggle(at, false), hasKeys && at >= 0 && onSelect !== undefined);

  const toggle = (index: number, isRange: boolean): void => {
    if (!rows || !onSelect) return;
    const next = new Set(selected);
    const isOn = !next.has(rowKey(rows[index]!));
    const from = isRange && anchor.current >= 0 ? anchor.current : index;
    for (let i = Math.min(from, index); i <= Math.max(from, index); i++) {
      if (isOn) next.add(rowKey(rows[i]!));
      else next.delete(rowKey(rows[i]!));
    }
    anchor.current = index;
    onSelect(next);
  };

  if (!rows) return error ? <Failed error={error} retry={refresh} /> : <Loading />;
  if (!rows.length && !isLoading) return <>{empty}</>;
  const areAll = rows.length > 0 && rows.every((row) => selected?.has(rowKey(row)));
  return (
    <>
      {error !== undefined && <Failed error={error} retry={refresh} />}
      <div class="table-frame" aria-busy={isLoading}>
        <table aria-label={label}>
          <thead>
            <tr>
              {onSelect && (
                <th class="pick" scope="col">
                  <input
                    type="checkbox"
                    aria-label={t('table.select_all')}
                    checked={areAll}
                    onChange={() => onSelect(areAll ? new Set() : new Set(rows.map(rowKey)))}
                  />
                </th>
              )}
              {columns.map((column) => (
                <Head key={column.key} column={column} />
              ))}
            </tr>
          </thead>
          <tbody ref={body}>
            {rows.map((row, index) => {
              const key = rowKey(row);
              return (
                <tr
                  key={key}
                  class={index === at ? 'at' : undefined}
                  aria-selected={selected ? selected.has(key) : undefined}
                  onClick={(event) => {
                    // The whole row leads there, but what is in it keeps its own meaning, and so does marking text.
                    if ((event.target as Element).closest('a,button,input,label,.menu')) return;
                    if (href && !getSelection()?.toString()) navigate(href(row));
                  }}
                >
                  {onSelect && (
                    <td class="pick">
                      <input
                        type="checkbox"
                        aria-label={t('table.select', { key })}
                        checked={selected?.has(key) ?? false}
                        onClick={(event) => {
                          event.stopPropagation();
                          toggle(index, event.shiftKey);
                        }}
                      />
                    </td>
                  )}
                  {columns.map((column) => (
                    <td key={column.key} class={cell(column)}>
                      {column.show(row)}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

const cell = <T,>(column: Column<T>): string | undefined =>
  [column.align === 'right' && 'right', column.minor && 'minor'].filter(Boolean).join(' ') || undefined;

function Head<T>({ column }: { column: Column<T> }) {
  const current = sortParam();
  const isOn = column.sort !== undefined && current.replace(/^-/, '') === column.sort;
  const isDown = current.startsWith('-');
  return (
    <th
      scope="col"
      class={cell(column)}
      style={column.width ? { width: column.width } : undefined}
      aria-sort={isOn ? (isDown ? 'descending' : 'ascending') : undefined}
    >
      {column.sort ? (
        <button type="button" class="sort" onClick={() => setQuery({ sort: isOn && !isDown ? `-${column.sort}` : column.sort! })}>
          {column.title}
          <Icon name={!isOn ? 'both' : isDown ? 'down' : 'up'} size={12} />
        </button>
      ) : (
        <span class={column.isQuiet ? 'visually-hidden' : undefined}>{column.title}</span>
      )}
    </th>
  );
}

const SIZES = ['25', '50', '100', '200'];

/** The page in the URL, as the API wants it. */
export const pageParams = (size = 50): { page: number; page_size: number } => ({
  page: Math.max(1, Number(param('page', '1')) || 1),
  page_size: Math.min(200, Math.max(1, Number(param('page_size', String(size))) || size)),
});

export function Paging({ total, page, page_size: size }: { total: number; page: number; page_size: number }) {
  const pages = Math.max(1, Math.ceil(total / size));
  const go = (to: number): void => {
    setQuery({ page: to === 1 ? null : String(to) }, { replace: false });
    scrollTo(0, 0);
  };
  return (
    <nav class="paging" aria-label={t('table.pages')}>
      <span>{tn('table.total', total)}</span>
      <span class="grow" />
      {total > 25 && (
        <Select
          label={t('table.page_size')}
          bare
          value={String(size)}
          options={[...new Set([...SIZES, String(size)])].map((value) => ({ value, text: value }))}
          onChange={(value) => setQuery({ page_size: value })}
        />
      )}
      {pages > 1 && (
        <>
          <Button icon="left" label={t('table.previous')} disabled={page <= 1} onClick={() => go(page - 1)} />
          <span>{t('table.page', { page: number(page), pages: number(pages) })}</span>
          <Button icon="right" label={t('table.next')} disabled={page >= pages} onClick={() => go(page + 1)} />
        </>
      )}
    </nav>
  );
}
