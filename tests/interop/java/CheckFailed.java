/** A failed check. Its message is printed. */
final class CheckFailed extends Exception {
    private static final long serialVersionUID = 1L;

    CheckFailed(String message) {
        super(message);
    }
}
