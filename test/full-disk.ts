import Database from "better-sqlite3";
import { vi } from "vitest";

/** The disk under the SQLite files that `open` opens: full from `fill` to `heal`, however much there is; `protect` makes them read-only. */
export async function smallDisk<T>(
  open: () => T | Promise<T>,
): Promise<{ opened: T; fill(): void; protect(): void; heal(): void }> {
  const pragma = vi.spyOn(Database.prototype, "pragma");
  const opened = await open();
  // the connection's own: another one of the file has its own limit
  const connections = new Set(pragma.mock.contexts as Database.Database[]);
  pragma.mockRestore();
  const set = (text: string): void => {
    for (const connection of connections) connection.pragma(text);
  };
  return {
    opened,
    fill: () => set("max_page_count = 1"), // never less than there are
    protect: () => set("query_only = 1"),
    heal() {
      set("max_page_count = 1000000");
      set("query_only = 0");
    },
  };
}
