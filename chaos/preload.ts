/** Loaded before a child's own program. Switches a safeguard off where the harness is asked to show that it would be missed. */
export {};
