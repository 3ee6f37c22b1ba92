/** A chain as the server laid it out: drag to move, Ctrl and wheel to zoom; only what is in sight is drawn. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useWidth } from '../../charts/width';
import { t, word } from '../../lib/i18n';
import { useKey } from '../../lib/keys';
import { familyOf } from '../../lib/states';
import { Button } from '../../ui/controls';
import { Icon } from '../../ui/icon';
import type { Layout, Spot } from './types';

interface View {
  x: number;
  y: number;
  zoom: number;
}

interface Props {
  layout: Layout;
  /** How each node stands; none for a definition. */
  states?: Map<string, string>;
  chosen?: string;
  onChoose?: (id: string) => void;
}

const PAD = 24;
const SMALLEST = 0.05;
const LARGEST = 2.5;
// Below this names cannot be read, and drawing them costs the most.
const LEGIBLE = 0.45;
const READABLE = 0.75;

function fitted(layout: Layout, width: number, height: number): View {
  const zoom = Math.max(SMALLEST, Math.min(1, (width - 2 * PAD) / layout.width, (height - 2 * PAD) / layout.height));
  return { zoom, x: (width - layout.width * zoom) / 2, y: (height - layout.height * zoom) / 2 };
}

/** Where one begins to look: all of it if it can be read so, else its beginning. */
function begun(layout: Layout, width: number, height: number): View {
  const whole = fitted(layout, width, height);
  return whole.zoom >= LEGIBLE ? whole : { zoom: READABLE, x: PAD, y: Math.min(PAD, (height - layout.height * READABLE) / 2) };
}

export function Graph({ layout, states, chosen, onChoose }: Props) {
  const { element, width } = useWidth<HTMLDivElement>();
  const height = Math.max(220, Math.min(560, layout.height + 2 * PAD));
  const [view, setView] = useState<View | null>(null);
  const grip = useRef<{ x: number; y: number } | null>(null);
  const frame = useRef<SVGSVGElement>(null);
  const shown = view ?? begun(layout, width, height);
  const fit = (): void => setView(fitted(layout, width, height));
  const zoomBy = (factor: number, at = { x: width / 2, y: height / 2 }): void =>
    setView((old) => {
      const from = old ?? begun(layout, width, height);
      const zoom = Math.max(SMALLEST, Math.min(LARGEST, from.zoom * factor));
      const ratio = zoom / from.zoom;
      return { zoom, x: at.x - (at.x - from.x) * ratio, y: at.y - (at.y - from.y) * ratio };
    });
  useKey('f', 'key.fit', fit);
  useKey('+', 'key.zoom_in', () => zoomBy(1.3));
  useKey('-', 'key.zoom_out', () => zoomBy(1 / 1.3));
  useEffect(() => {
    const turn = (event: WheelEvent): void => {
      // Without Ctrl the wheel belongs to the page.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = frame.current!.getBoundingClientRect();
      zoomBy(Math.exp(-event.deltaY / 300), { x: event.clientX - box.left, y: event.clientY - box.top });
    };
    const svg = frame.current!;
    svg.addEventListener('wheel', turn, { passive: false });
    return () => svg.removeEventListener('wheel', turn);
  }, [width, height, layout]);
  const spots = useMemo(() => new Map(layout.nodes.map((node) => [node.id, node])), [layout]);
  const isSeen = (x1: number, y1: number, x2: number, y2: number): boolean =>
    x2 * shown.zoom + shown.x > 0 && x1 * shown.zoom + shown.x < width && y2 * shown.zoom + shown.y > 0 && y1 * shown.zoom + shown.y < height;
  const { node_width: wide, node_height: tall } = layout;
  const seen = layout.nodes.filter((node) => isSeen(node.x, node.y, node.x + wide, node.y + tall));
  return (
    <div class="graph" ref={element}>
      <svg
        ref={frame}
        width={width}
        height={height}
        role="group"
        aria-label={t('chain.graph_label')}
        class={grip.current ? 'moving' : undefined}
        onPointerDown={(event) => {
          if (event.button !== 0 || (event.target as Element).closest('.node')) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          grip.current = { x: event.clientX - shown.x, y: event.clientY - shown.y };
        }}
        onPointerMove={(event) => {
          const held = grip.current;
          if (held) setView({ zoom: shown.zoom, x: event.clientX - held.x, y: event.clientY - held.y });
        }}
        onPointerUp={() => (grip.current = null)}
        onPointerCancel={() => (grip.current = null)}
      >
        <g transform={`translate(${shown.x} ${shown.y}) scale(${shown.zoom})`}>
          {layout.edges.map((edge) => {
            const from = spots.get(edge.from)!;
            const to = spots.get(edge.to)!;
            const [x1, y1, x2, y2] = [from.x + wide, from.y + tall / 2, to.x, to.y + tall / 2];
            if (!isSeen(x1, Math.min(y1, y2), x2, Math.max(y1, y2))) return null;
            const bend = Math.max(20, (x2 - x1) / 2);
            const isMet = states?.get(edge.from) === 'SUCCESS';
            return (
              <path
                key={`${edge.from}\n${edge.to}`}
                class={isMet ? 'edge met' : 'edge'}
                d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2 - 5} ${y2}m-4 -4l4 4l-4 4`}
              />
            );
          })}
          {seen.map((node) => (
            <Node
              key={node.id}
              node={node}
              state={states?.get(node.id)}
              wide={wide}
              tall={tall}
              isLegible={shown.zoom >= LEGIBLE}
              isChosen={node.id === chosen}
              act={onChoose && (() => onChoose(node.id))}
            />
          ))}
        </g>
      </svg>
      <div class="graph-tools">
        <Button icon="plus" label={t('key.zoom_in')} onClick={() => zoomBy(1.3)} />
        <Button icon="minus" label={t('key.zoom_out')} onClick={() => zoomBy(1 / 1.3)} />
        <Button text={t('chain.fit')} title={t('chain.fit_key')} onClick={fit} />
      </div>
    </div>
  );
}

interface NodeProps {
  node: Spot;
  state: string | undefined;
  wide: number;
  tall: number;
  isLegible: boolean;
  isChosen: boolean;
  act?: () => void;
}

function Node({ node, state, wide, tall, isLegible, isChosen, act }: NodeProps) {
  const family = state ? familyOf(state) : 'none';
  const name = state ? `${node.id}: ${word('state', state)}` : node.id;
  const indent = state ? 32 : 12;
  return (
    <g
      class={`node ${family}${isChosen ? ' chosen' : ''}`}
      transform={`translate(${node.x} ${node.y})`}
      role={act ? 'button' : 'img'}
      aria-label={name}
      aria-pressed={act ? isChosen : undefined}
      tabindex={act ? 0 : undefined}
      onClick={act}
      onKeyDown={
        act &&
        ((event) => {
          if (event.key !== 'Enter' && event.key !== ' ') return;
          event.preventDefault();
          event.stopPropagation();
          act();
        })
      }
    >
      <title>{`${name}\n${word('kind', node.type)}`}</title>
      <rect width={wide} height={tall} rx={6} />
      {isLegible && (
        <>
          {state && (
            <g class={`mark ${family}`} transform={`translate(10 ${tall / 2 - 8})`}>
              <Icon name={familyOf(state)} size={16} />
            </g>
          )}
          {/* HTML inside, because SVG cannot shorten a text to its box. */}
          <foreignObject x={indent} y={0} width={wide - indent - 6} height={tall}>
            <div class="node-words">
              <span class="node-name">{node.id}</span>{' '}
              <span class="node-kind">{state ? word('state', state) : word('kind', node.type)}</span>
            </div>
          </foreignObject>
        </>
      )}
    </g>
  );
}
