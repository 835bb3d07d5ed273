// What each package offers to its users, as the compiler sees it: every name that can be imported, with its docstring, and
// every field that can be set. The reference and its test are made of this.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  API,
  type Checker,
  type Symbol as Declared,
  isIntersectionType,
  isObjectType,
  isUnionType,
  type Project,
  SignatureKind,
  SymbolFlags,
  type Type,
} from "typescript/unstable/sync";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKAGES = ["core", "store", "server", "client", "agent", "telemetry"];

/** A property of an object that a user writes, or gets to work with. */
export interface Field {
  /** With the path inside its object where objects are nested, such as `info.name`. */
  readonly name: string;
  /** Whether it may be left out. */
  readonly optional: boolean;
  /** Its docstring; empty when there is none. */
  readonly doc: string;
}

/** A name that can be imported. */
export interface Export {
  readonly name: string;
  readonly kind: "class" | "function" | "interface" | "type" | "constant";
  /** Its docstring; empty when there is none. */
  readonly doc: string;
  /** Whether it is an object of options, which a user writes down field by field. */
  readonly isOptions: boolean;
  /** What can be set, or used, where this is an object of options or one to work with; empty for everything else. */
  readonly fields: readonly Field[];
}

/** What can be imported from one address. */
export interface Entry {
  /** For example `@tenon/server/auth`. */
  readonly address: string;
  readonly exports: readonly Export[];
}

/** What a user writes down field by field is named so. */
const OPTIONS = /(Options|Config|Connection|Hint|Rules|Rule|Events|Callbacks|Grants|Sandbox|Mount|Extension)$/;
/** What a user works with, member by member. */
const HANDLES = /(Context|Client|TenonServer|Stores?|Request|Caller|Exchange|Notifier|Listening|Info)$/;

const KINDS = [
  [SymbolFlags.Class, "class"],
  [SymbolFlags.Function, "function"],
  [SymbolFlags.Interface, "interface"],
  [SymbolFlags.TypeAlias, "type"],
  [SymbolFlags.Variable, "constant"],
] as const;

function kindOf(symbol: Declared): Export["kind"] {
  const found = KINDS.find(([flag]) => symbol.flags & flag);
  if (!found) throw new Error(`${symbol.name} is neither a value nor a type`);
  return found[1];
}

/** Whether it is written in this repository, so that its docstring is ours to write. */
const isOurs = (symbol: Declared): boolean =>
  symbol.declarations.some(
    ({ path }) => path.startsWith(`${root.toLowerCase()}/packages/`) || path.startsWith(`${root}/packages/`),
  );

/** Levels of objects in objects. */
const MAX_DEPTH = 3;

/**
 * Whether the fields of an object belong to the one that holds it: it has no name, or none that can be imported.
 * @param names what can be imported
 */
function isPart(checker: Checker, type: Type | undefined, names: ReadonlySet<string>): boolean {
  const symbol = type && isObjectType(type) ? type.getSymbol() : undefined;
  if (!type || !symbol || checker.getSignaturesOfType(type, SignatureKind.Call).length > 0) return false;
  if (["__type", "__object"].includes(symbol.name)) return true;
  return (symbol.flags & SymbolFlags.Interface) !== 0 && isOurs(symbol) && !names.has(symbol.name);
}

function fieldsOf(
  { checker, names }: { checker: Checker; names: ReadonlySet<string> },
  type: Type,
  path: readonly string[] = [],
  seen = new Map<string, Field>(),
): Field[] {
  if (isUnionType(type) || isIntersectionType(type)) {
    for (const part of type.getTypes()) fieldsOf({ checker, names }, part, path, seen);
  } else if (isObjectType(type)) {
    for (const property of checker.getPropertiesOfType(type)) {
      if (!isOurs(property) || property.name.startsWith("__@")) continue;
      const at = [...path, property.name];
      const name = at.join(".");
      const optional = (property.flags & SymbolFlags.Optional) !== 0;
      const doc = property.getDocumentationComment(checker).trim();
      // several members of a union may have it: documented once is documented
      if (!seen.get(name)?.doc) seen.set(name, { name, optional, doc });
      const held = checker.getTypeOfSymbol(property);
      const inside = held && checker.getNonNullableType(held);
      if (inside && at.length < MAX_DEPTH && isPart(checker, inside, names))
        fieldsOf({ checker, names }, inside, at, seen);
    }
  }
  return [...seen.values()];
}

/** An address, and the file behind it. */
interface Address {
  readonly address: string;
  readonly file: string;
  readonly project: Project;
}

function namesOf({ address, file, project: { checker, program } }: Address): readonly Declared[] {
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${address}: ${file} exports nothing`);
  return checker.getExportsOfModule(module);
}

function entryOf(at: Address, names: ReadonlySet<string>): Entry {
  const { checker } = at.project;
  const exports = namesOf(at).map((exported): Export => {
    const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const { name } = exported;
    const kind = kindOf(symbol);
    const isType = kind === "interface" || kind === "type";
    const type = isType && isOurs(symbol) ? checker.getDeclaredTypeOfSymbol(symbol) : undefined;
    const isOptions = type !== undefined && OPTIONS.test(name);
    const all = type && (isOptions || HANDLES.test(name)) ? fieldsOf({ checker, names }, type) : [];
    return {
      name,
      kind,
      doc: symbol.getDocumentationComment(checker).trim(),
      isOptions,
      // what something to work with holds is another thing
      fields: all.filter((field) => isOptions || !field.name.includes(".")),
    };
  });
  return { address: at.address, exports: exports.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

function addressesOf(api: API): Address[] {
  const configs = new Map(PACKAGES.map((name) => [name, join(root, "packages", name, "tsconfig.json")]));
  const snapshot = api.updateSnapshot({ openProjects: [...configs.values()] });
  return PACKAGES.flatMap((name) => {
    const project = snapshot.getProject(configs.get(name) ?? "");
    if (!project) throw new Error(`packages/${name} has no tsconfig.json`);
    const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
    return Object.entries<{ "@tenon/source"?: string }>(manifest.exports).flatMap(([path, target]) => {
      const file = target["@tenon/source"];
      if (!file || path.startsWith("./internal")) return [];
      return [{ address: `${manifest.name}${path.slice(1)}`, file: join(root, "packages", name, file), project }];
    });
  });
}

/** Every address of every library that users import from; `internal` ones are the packages' own business. */
export function readSurface(): Entry[] {
  const api = new API({ cwd: root });
  try {
    const addresses = addressesOf(api);
    const names = new Set(addresses.flatMap((address) => namesOf(address).map(({ name }) => name)));
    return addresses.map((address) => entryOf(address, names));
  } finally {
    api.close();
  }
}
