/** Where the desk keeps things: on this machine alone, or in Postgres with any number of machines. */
export interface Place {
  /** Absolute path. Keys and logs; and the SQLite files where there is no `url`. */
  readonly directory: string;
  /** Address of a Postgres database. Left out: SQLite files in the directory. */
  readonly url?: string | undefined;
  /** Schema of the desk's tables in Postgres, made when there is none. Default {@link SCHEMA}. */
  readonly schema?: string | undefined;
}

export const SCHEMA = "after_sales";
