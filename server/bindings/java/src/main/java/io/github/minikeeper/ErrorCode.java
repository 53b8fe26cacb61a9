// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/**
 * The error of a fault: see {@link Fault#error}. The names are those of {@code KeeperException.Code}, which {@code
 * ErrorCode.valueOf(code.name())} converts.
 */
public enum ErrorCode {
  /** system error (-1). */
  SYSTEMERROR,
  /** not tried, an earlier operation failed (-2). */
  RUNTIMEINCONSISTENCY,
  /** data inconsistency (-3). */
  DATAINCONSISTENCY,
  /** connection lost (-4). */
  CONNECTIONLOSS,
  /** request could not be decoded (-5). */
  MARSHALLINGERROR,
  /** operation not implemented (-6). */
  UNIMPLEMENTED,
  /** operation timed out (-7). */
  OPERATIONTIMEOUT,
  /** bad arguments (-8). */
  BADARGUMENTS,
  /** unknown session (-12). */
  UNKNOWNSESSION,
  /** new configuration has no quorum (-13). */
  NEWCONFIGNOQUORUM,
  /** another reconfiguration is in progress (-14). */
  RECONFIGINPROGRESS,
  /** API error (-100). */
  APIERROR,
  /** znode does not exist (-101). */
  NONODE,
  /** not permitted (-102). */
  NOAUTH,
  /** version does not match (-103). */
  BADVERSION,
  /** ephemeral cannot have children (-108). */
  NOCHILDRENFOREPHEMERALS,
  /** znode already exists (-110). */
  NODEEXISTS,
  /** znode has children (-111). */
  NOTEMPTY,
  /** session expired (-112). */
  SESSIONEXPIRED,
  /** invalid callback (-113). */
  INVALIDCALLBACK,
  /** invalid access list (-114). */
  INVALIDACL,
  /** authentication failed (-115). */
  AUTHFAILED,
  /** session is closing (-116). */
  CLOSING,
  /** nothing to reply (-117). */
  NOTHING,
  /** session moved to another connection (-118). */
  SESSIONMOVED,
  /** write sent to a read-only server (-119). */
  NOTREADONLY,
  /** local session cannot own ephemerals (-120). */
  EPHEMERALONLOCALSESSION,
  /** no such watch (-121). */
  NOWATCHER,
  /** request timed out (-122). */
  REQUESTTIMEOUT,
  /** reconfiguration is disabled (-123). */
  RECONFIGDISABLED,
  /** authentication required (-124). */
  SESSIONCLOSEDREQUIRESASLAUTH,
  /** quota exceeded (-125). */
  QUOTAEXCEEDED,
  /** operation throttled (-127). */
  THROTTLEDOP
}
