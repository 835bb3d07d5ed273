import { keepNewest } from "@tenon/core";
import type { Adapter, AdapterPayload } from "oidc-provider";

/** Entries of one kind; the oldest goes first. */
const MAX_ENTRIES = 5_000;

interface Entry {
  payload: AdapterPayload;
  readonly until: number;
}

/** Everything the authorization server remembers, by kind and id: bounded, and gone with the process. */
export class Memory {
  readonly #kinds = new Map<string, Map<string, Entry>>();

  #entries(kind: string): Map<string, Entry> {
    const found = this.#kinds.get(kind) ?? new Map<string, Entry>();
    this.#kinds.set(kind, found);
    return found;
  }

  #find(kind: string, wanted: (id: string, payload: AdapterPayload) => boolean): AdapterPayload | undefined {
    const now = Date.now();
    for (const [id, { payload, until }] of this.#entries(kind)) if (until > now && wanted(id, payload)) return payload;
    return undefined;
  }

  /** What `oidc-provider` asks of a store, for one kind of thing. */
  adapter(kind: string): Adapter {
    const entries = this.#entries(kind);
    const forget = (unwanted: (payload: AdapterPayload) => boolean): void => {
      for (const [id, { payload }] of entries) if (unwanted(payload)) entries.delete(id);
    };
    return {
      upsert: async (id, payload, expiresIn) => {
        const now = Date.now();
        if (entries.size >= MAX_ENTRIES) for (const [old, { until }] of entries) if (until <= now) entries.delete(old);
        const until = expiresIn ? now + expiresIn * 1000 : Number.POSITIVE_INFINITY;
        keepNewest(entries, id, { payload, until }, MAX_ENTRIES);
      },
      find: async (id) => {
        const entry = entries.get(id);
        return entry && entry.until > Date.now() ? entry.payload : undefined;
      },
      findByUid: async (uid) => this.#find(kind, (_, payload) => payload.uid === uid),
      findByUserCode: async (code) => this.#find(kind, (_, payload) => payload.userCode === code),
      consume: async (id) => {
        const entry = entries.get(id);
        if (entry) entry.payload = { ...entry.payload, consumed: Math.floor(Date.now() / 1000) };
      },
      destroy: async (id) => {
        entries.delete(id);
      },
      revokeByGrantId: async (grantId) => forget((payload) => payload.grantId === grantId),
    };
  }
}
