/** What a finished effect left behind: a suspended call's answered state, or an idempotent call, with its outcome. */
export interface OutcomeStore {
  readonly kind: string;
}
