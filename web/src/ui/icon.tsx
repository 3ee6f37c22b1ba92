/** Our pictograms, drawn rather than taken from a font so that they look the same everywhere. */

const paths = {
  wait: 'M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3Z',
  off: 'M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3ZM4.6 11.4l6.8-6.8',
  run: 'M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3Z',
  retry: 'M12.7 6.5A5 5 0 1 0 13 9M13 3v3.6H9.4',
  outside: 'M3 6h9.5M10 3.4 12.6 6 10 8.6M13 10.5H3.5M6 8l-2.6 2.6L6 13.1',
  ok: 'm3.2 8.4 3.2 3.2 6.4-7',
  bad: 'm4 4 8 8M12 4l-8 8',
  search: 'M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm3 7 3.2 3.2',
  play: 'M5 3.5v9l7.5-4.5Z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  copy: 'M6 6h7v7H6zM10 6V3H3v7h3',
  trash: 'M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  close: 'm4 4 8 8M12 4l-8 8',
  down: 'm4 6.5 4 4 4-4',
  up: 'm4 9.5 4-4 4 4',
  both: 'm5 6.4 3-3 3 3M5 9.6l3 3 3-3',
  left: 'm9.5 4-4 4 4 4',
  right: 'm6.5 4 4 4-4 4',
  sun: 'M8 5.4a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2ZM8 1.8v1.4M8 12.8v1.4M1.8 8h1.4M12.8 8h1.4M3.6 3.6l1 1M11.4 11.4l1 1M12.4 3.6l-1 1M4.6 11.4l-1 1',
  moon: 'M12.8 9.6A5.4 5.4 0 0 1 6.4 3.2a5.4 5.4 0 1 0 6.4 6.4Z',
  auto: 'M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3Z',
  clock: 'M8 2.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 8 2.8ZM8 5v3.2l2.2 1.4',
  edit: 'm10.8 3.2 2 2L6 12l-2.6.6L4 10Z',
  chain: 'M2.5 5.5h4v5h-4zM9.5 2.5h4v4h-4zM9.5 9.5h4v4h-4zM6.5 8H8V4.5h1.5M8 8v3.5h1.5',
  warn: 'M8 2.8 14 13H2Zm0 3.7v3M8 11.3v.01',
  stop: 'M4 4h8v8H4z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
} as const;

export type IconName = keyof typeof paths;
const filled = new Set<IconName>(['play', 'stop']);
const halves = new Set<IconName>(['run', 'auto']);

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} class={filled.has(name) ? 'fill' : undefined} />
      {halves.has(name) && <path class="fill" d="M8 3a5 5 0 0 1 0 10Z" />}
    </svg>
  );
}
