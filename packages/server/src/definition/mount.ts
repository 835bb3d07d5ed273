import { ConfigError } from "@tenon/core";
import type { Service } from "../dispatch/dispatch.ts";
import type { DefinitionKind } from "./definitions.ts";
import { type Change, type Home, prefixed, type Registry } from "./registry.ts";

const PREFIX = /^[A-Za-z0-9][A-Za-z0-9.-]{0,62}$/;

/** Whether `home` holds, at any depth, definitions of `registry`. */
function contains(home: Home, registry: Registry): boolean {
  if (home.registry === registry) return true;
  const { tools, prompts, resources } = home.registry;
  return [tools, prompts, resources].some((map) =>
    [...map.values()].some(({ mounted }) => mounted !== undefined && contains(mounted.home, registry)),
  );
}

/**
 * Offers another server's definitions under a prefix and follows its changes: what is added, replaced or removed there is
 * here too. Its middleware, lifespan, time limit and argument rules stay around its definitions.
 * @throws ConfigError `code: "prefix"`, `"mount_cycle"`, or `"duplicate"` naming the definition (nothing is mounted then)
 */
export function mount(registry: Registry, prefix: string, home: Home): void {
  if (!PREFIX.test(prefix)) {
    throw new ConfigError(
      `mount: the prefix ${JSON.stringify(prefix)} is not allowed: use 1 to 63 of A-Z a-z 0-9 . - and begin with a letter or digit`,
      { code: "prefix", data: { prefix } },
    );
  }
  if (contains(home, registry)) {
    throw new ConfigError(`mount: a server cannot be mounted in itself`, { code: "mount_cycle", data: { prefix } });
  }
  const done: Array<[DefinitionKind, string]> = [];
  const adopt = (kind: DefinitionKind, name: string): void => {
    registry.adopt(kind, name, home, prefix);
    done.push([kind, prefixed(kind, prefix, name)]);
  };
  try {
    for (const name of home.registry.tools.keys()) adopt("tool", name);
    for (const name of home.registry.resources.keys()) adopt("resource", name);
    for (const name of home.registry.prompts.keys()) adopt("prompt", name);
  } catch (error) {
    for (const [kind, name] of done) registry.remove(kind, name);
    throw error;
  }
  home.registry.onChange(({ kind, name, what }: Change) => {
    const here = prefixed(kind, prefix, name);
    if (what === "removed") registry.remove(kind, here);
    else if (what === "added") registry.adopt(kind, name, home, prefix);
    else registry.replacing(kind, here, () => registry.adopt(kind, name, home, prefix));
  });
}

/** The same server's service with the definitions of one it has mounted. */
export function within(service: Service, mounted: { home: Home; prefix: string }): Service {
  const { registry, middleware, reading, timeoutMs, lifespan } = mounted.home;
  const namePrefix = `${service.namePrefix}${mounted.prefix}_`;
  return { ...service, registry, middleware, reading, timeoutMs, lifespan, namePrefix };
}
