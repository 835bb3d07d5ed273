import { pathToFileURL } from "node:url";

let registered = false;

/** Imports a module of the user's, also a TypeScript one on a Node that cannot read it. */
export async function loadModule(path: string): Promise<unknown> {
  const native = "typescript" in process.features && process.features.typescript;
  if (!registered && !native && /\.[cm]?tsx?$/.test(path)) {
    // a TypeScript file counts as CommonJS where no package.json says otherwise
    const [esm, cjs] = await Promise.all([import("tsx/esm/api"), import("tsx/cjs/api")]);
    esm.register();
    cjs.register();
    registered = true;
  }
  return import(pathToFileURL(path).href);
}
