import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

const here = import.meta.dirname;

// What a build is made from. tests/console/test_dist.py reads the same list and says when dist is stale.
const roots = ['src', 'i18n', 'index.html', 'package.json', 'package-lock.json', 'tsconfig.json', 'vite.config.ts'];

function filesUnder(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    return [path];
  }
}

function digests(folder: string, paths: string[]): Record<string, string> {
  const named = paths.map((path) => [relative(folder, path).split(sep).join('/'), path] as const);
  named.sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    named.map(([name, path]) => [name, createHash('sha256').update(readFileSync(path)).digest('hex')]),
  );
}

/** Puts a .gz beside every file, and a manifest with the digests of what went in and what came out. */
function manifest(): Plugin {
  let dist = '';
  return {
    name: 'ksana-manifest',
    apply: 'build',
    configResolved(config) {
      dist = resolve(here, config.build.outDir);
    },
    closeBundle() {
      for (const path of filesUnder(dist)) {
        if (!path.endsWith('index.html')) writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
      const files = digests(dist, filesUnder(dist));
      const sources = digests(here, roots.flatMap((name) => filesUnder(join(here, name))));
      writeFileSync(join(dist, 'manifest.json'), `${JSON.stringify({ sources, files }, null, 1)}\n`);
    },
  };
}

export default defineConfig({
  // Relative, so that the <base href> the server writes decides where everything is found.
  base: './',
  plugins: [manifest()],
  build: {
    outDir: '../src/ksana/console/dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
  },
  esbuild: { legalComments: 'none' },
  server: {
    proxy: {
      // Ksana takes writes only from pages of its own host, so it has to be told the one the browser sees.
      '^/(api|scheduler|openapi.json|docs)': { target: process.env.KSANA_URL ?? 'http://127.0.0.1:7100', changeOrigin: false },
    },
  },
});
