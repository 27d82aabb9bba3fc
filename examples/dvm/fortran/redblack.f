! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
C     Red and black points by turns, in fixed form. Argument: size.
      PROGRAM REDBLK
      INTEGER N, IT, IRB, I, J
      REAL EPS, W, S
      REAL, ALLOCATABLE :: A(:,:)
      CHARACTER*32 WORD
CDVM$ DISTRIBUTE A(BLOCK, BLOCK)
      CALL GET_COMMAND_ARGUMENT(1, WORD)
      READ (WORD, *) N
      ALLOCATE (A(N, N))
      W = 0.5
CDVM$ PARALLEL (J, I) ON A(I, J)
      DO 1 J = 1, N
      DO 1 I = 1, N
         IF (I .EQ. J) THEN
            A(I, J) = N + 2
         ELSE
            A(I, J) = -1.
         ENDIF
1     CONTINUE
      DO 2 IT = 1, 20
      EPS = 0.
      DO 3 IRB = 0, 1
CDVM$ PARALLEL (J, I) ON A(I, J), NEW (S), REDUCTION (MAX(EPS)),
CDVM$*                SHADOW_RENEW (A)
      DO 21 J = 2, N-1
      DO 21 I = 2 + MOD(J+IRB, 2), N-1, 2
         S = A(I, J)
         A(I, J) = (W / 4) * (A(I-1, J) + A(I+1, J) + A(I, J-1) +
     *             A(I, J+1)) + (1 - W) * A(I, J)
         EPS = MAX(EPS, ABS(S - A(I, J)))
21    CONTINUE
3     CONTINUE
      PRINT 200, IT, EPS
200   FORMAT(' IT = ', I4, '   EPS = ', E14.7)
2     CONTINUE
      OPEN (3, FILE='redblack.dat', FORM='FORMATTED', STATUS='UNKNOWN')
      WRITE (3, *) A
      CLOSE (3)
      END
