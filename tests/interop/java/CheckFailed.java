/** A check that did not hold; its message is the line that is printed. */
final class CheckFailed extends Exception {
    private static final long serialVersionUID = 1L;

    CheckFailed(String message) {
        super(message);
    }
}
