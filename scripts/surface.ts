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
  SymbolFlags,
  type Type,
} from "typescript/unstable/sync";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKAGES = ["core", "store", "server", "client", "agent"];

/** Something that can be set: a property of an options object. */
export interface Field {
  /** With the path inside its options object where objects are nested, such as `info.name`. */
  readonly name: string;
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
  /** What can be set, where this is an options object; empty for everything else. */
  readonly fields: readonly Field[];
}

/** What can be imported from one address. */
export interface Entry {
  /** For example `@tenon/server/auth`. */
  readonly address: string;
  readonly exports: readonly Export[];
}

/** What a user writes down field by field is named so. */
const OPTIONS = /(Options|Config|Connection|Hint|Rules?|Limits|Policy|Events|Hooks|Grants|Sandbox|Mount)$/;

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

/** Object types without a name of their own, whose fields belong to the object that holds them. */
const isNameless = (type: Type): boolean => ["__type", "__object"].includes(type.getSymbol()?.name ?? "");

function fieldsOf(checker: Checker, type: Type, prefix = "", seen = new Map<string, Field>()): Field[] {
  if (isUnionType(type) || isIntersectionType(type)) {
    for (const part of type.getTypes()) fieldsOf(checker, part, prefix, seen);
  } else if (isObjectType(type)) {
    for (const property of checker.getPropertiesOfType(type)) {
      if (!isOurs(property)) continue;
      const name = `${prefix}${property.name}`;
      const optional = (property.flags & SymbolFlags.Optional) !== 0;
      const doc = property.getDocumentationComment(checker).trim();
      // several members of a union may have it: documented once is documented
      if (!seen.get(name)?.doc) seen.set(name, { name, optional, doc });
      const inside = checker.getTypeOfSymbol(property);
      const own = inside && checker.getNonNullableType(inside);
      if (own && isObjectType(own) && isNameless(own) && checker.getSignaturesOfType(own, 0).length === 0)
        fieldsOf(checker, own, `${name}.`, seen);
    }
  }
  return [...seen.values()];
}

function entryOf(project: Project, address: string, file: string): Entry {
  const { checker, program } = project;
  const source = program.getSourceFile(file);
  const module = source && checker.getSymbolAtLocation(source);
  if (!module) throw new Error(`${address}: ${file} exports nothing`);
  const exports = checker.getExportsOfModule(module).map((name): Export => {
    const symbol = name.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(name) : name;
    const kind = kindOf(symbol);
    const isOptions = (kind === "interface" || kind === "type") && OPTIONS.test(name.name) && isOurs(symbol);
    return {
      name: name.name,
      kind,
      doc: symbol.getDocumentationComment(checker).trim(),
      fields: isOptions ? fieldsOf(checker, checker.getDeclaredTypeOfSymbol(symbol)) : [],
    };
  });
  return { address, exports: exports.sort((a, b) => (a.name < b.name ? -1 : 1)) };
}

/** Every address of every library that users import from; `internal` ones are the packages' own business. */
export function readSurface(): Entry[] {
  const api = new API({ cwd: root });
  try {
    return entriesOf(api);
  } finally {
    api.close();
  }
}

function entriesOf(api: API): Entry[] {
  const configs = new Map(PACKAGES.map((name) => [name, join(root, "packages", name, "tsconfig.json")]));
  const snapshot = api.updateSnapshot({ openProjects: [...configs.values()] });
  return PACKAGES.flatMap((name) => {
    const project = snapshot.getProject(configs.get(name) ?? "");
    if (!project) throw new Error(`packages/${name} has no tsconfig.json`);
    const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
    return Object.entries<{ "@tenon/source"?: string }>(manifest.exports).flatMap(([path, target]) => {
      const file = target["@tenon/source"];
      if (!file || path.startsWith("./internal")) return [];
      return entryOf(project, `${manifest.name}${path.slice(1)}`, join(root, "packages", name, file));
    });
  });
}
