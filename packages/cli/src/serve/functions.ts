import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { isRecord, messageOf } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import { loadModule } from "../load-module.ts";

/** A tool's function: called with the arguments and the context of the call. */
export type ServedFunction = (args: unknown, context: unknown) => unknown;

/** A function, or why there is none. */
export type FoundFunction = { readonly run: ServedFunction } | { readonly problem: string };

const ENDINGS = [".ts", ".js", ".mjs"];
const MODULE = /\.[cm]?[jt]sx?$/;
/** Milliseconds a module may take to load. */
const LOAD_MS = 30_000;

interface Reference {
  /** Files that may be meant, the first that is there is. */
  readonly files: readonly string[];
  readonly name: string;
}

/** `./clock.ts#now`, `./clock.ts` for its default export, or `tools.clock.now`. */
function parseReference(reference: string, folder: string): Reference | undefined {
  const hash = reference.indexOf("#");
  const file = hash === -1 ? reference : reference.slice(0, hash);
  const name = hash === -1 ? "default" : reference.slice(hash + 1);
  if (hash !== -1 || /[\\/]/.test(file) || MODULE.test(file)) {
    return file === "" || name === "" ? undefined : { files: [resolve(folder, file)], name };
  }
  const words = reference.split(".");
  const last = words.pop();
  if (last === undefined || words.length === 0 || [...words, last].some((word) => !/^[\w$-]+$/.test(word)))
    return undefined;
  const path = resolve(folder, ...words);
  return { files: ENDINGS.map((ending) => `${path}${ending}`), name: last };
}

const isFile = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;

/** A module beside the one that is not there, with nearly its name. */
function nearFile(path: string): string | undefined {
  const folder = dirname(path);
  if (!existsSync(folder)) return undefined;
  const stem = (name: string): string => name.replace(MODULE, "");
  const modules = readdirSync(folder).filter((name) => MODULE.test(name));
  const near = didYouMean(stem(basename(path)), modules.map(stem));
  return modules.find((name) => stem(name) === near);
}

const shownPath = (path: string, folder: string): string => relative(folder, path) || path;

async function load(path: string): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it has not loaded within ${LOAD_MS / 1_000} seconds`)), LOAD_MS);
  });
  try {
    return await Promise.race([loadModule(path), late]);
  } finally {
    clearTimeout(timer);
  }
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}

/** What a module exports under a name, if it is a function. */
function pick(module: unknown, name: string, file: string): FoundFunction {
  const exports = isRecord(module) ? module : {};
  // a CommonJS module read as an ES module has its names below `default` only
  const inner = isRecord(exports.default) ? exports.default : {};
  const outer = Object.hasOwn(exports, name) ? exports[name] : undefined;
  const value = typeof outer !== "function" && Object.hasOwn(inner, name) ? inner[name] : outer;
  if (typeof value === "function") return { run: value as ServedFunction }; // what it takes is its author's business
  if (value !== undefined)
    return { problem: `names ${JSON.stringify(name)} of ${file}, which is ${kindOf(value)} and no function` };
  // what `default` of a CommonJS module holds is listed, itself it is no export
  const known = new Set([...Object.keys(exports), ...Object.keys(inner)]);
  if (isRecord(exports.default) && inner.default === undefined) known.delete("default");
  const names = [...known].filter((one) => one !== "__esModule" && one !== "module.exports");
  const near = didYouMean(name, names);
  const hint = near ? ` (did you mean "${near}"?)` : "";
  return {
    problem: `names ${JSON.stringify(name)}, which ${file} does not export${hint}; it exports: ${names.join(", ") || "nothing"}`,
  };
}

/** Finds the functions of a file; a module is loaded once. */
export function createFunctions(folder: string): (reference: string) => Promise<FoundFunction> {
  const modules = new Map<string, Promise<unknown>>();
  return async (reference) => {
    const parsed = parseReference(reference, folder);
    if (!parsed) {
      return {
        problem: `is ${JSON.stringify(reference)}; expected ./functions.js#name, or module.name for an export of module.ts, .js or .mjs`,
      };
    }
    const file = parsed.files.find(isFile);
    if (file === undefined) {
      const [first = ""] = parsed.files;
      const near = nearFile(first);
      const tried = parsed.files.map((path) => shownPath(path, folder)).join(", ");
      return {
        problem: `names a module that is not there; looked for ${tried}${near ? `; did you mean ${join(shownPath(dirname(first), folder), near)}?` : ""}`,
      };
    }
    const loading = modules.get(file) ?? load(file);
    modules.set(file, loading);
    try {
      return pick(await loading, parsed.name, shownPath(file, folder));
    } catch (cause) {
      return {
        problem: `names ${shownPath(file, folder)}, which cannot be loaded: ${messageOf(cause).split("\n")[0]}`,
      };
    }
  };
}
